"""The table of the posteriors: name, builder, dimensions, and what replaces a flat prior.

The name is that of posteriordb, "data-model". Where `replaces` is empty all priors are proper and
those of the Stan program. Dimensions are those of the unconstrained space.
"""

from collections.abc import Iterator

from benchmarks.atlas.models import (
    capture_recapture,
    counts,
    differential_equations,
    gaussian_processes,
    growth,
    hidden_markov,
    hierarchical,
    item_response,
    linear,
    logistic,
    mixtures,
    time_series,
)
from benchmarks.atlas.models.linear import kidscore, logmesquite, regression
from benchmarks.atlas.models.logistic import wells
from benchmarks.atlas.posterior import Posterior
from benchmarks.atlas.samplers import TARGETS


def flat(scale: float) -> str:
    """Return what replaces the flat priors of a regression."""
    return f"beta flat -> Normal(0, {scale:g}); sigma flat -> HalfNormal({scale:g})"


def linear_flat(name: str, design: linear.Design, scale: float, dims: int) -> Posterior:
    return Posterior(name, regression(design, float(scale)), dims, flat(scale))


def kid_cauchy(model: str, design: linear.Design, dims: int) -> Posterior:
    builder = regression(design, 1000.0, cauchy=True)
    return Posterior(f"kidiq-{model}", builder, dims, "beta flat -> Normal(0, 1000)")


REGRESSIONS = [
    linear_flat("earnings-earn_height", linear.earn_height, 1e6, 3),
    linear_flat("earnings-log10earn_height", linear.log10earn_height, 100, 3),
    linear_flat("earnings-logearn_height", linear.logearn_height, 100, 3),
    linear_flat("earnings-logearn_height_male", linear.logearn_height_male, 100, 4),
    linear_flat("earnings-logearn_interaction", linear.logearn_interaction, 100, 5),
    linear_flat("earnings-logearn_interaction_z", linear.logearn_interaction_z, 100, 5),
    linear_flat("earnings-logearn_logheight_male", linear.logearn_logheight_male, 100, 4),
    kid_cauchy("kidscore_momhs", kidscore("mom_hs"), 3),
    kid_cauchy("kidscore_momiq", kidscore("mom_iq"), 3),
    kid_cauchy("kidscore_momhsiq", kidscore("mom_hs", "mom_iq"), 4),
    kid_cauchy("kidscore_interaction", linear.kidscore_interaction, 5),
    *(
        linear_flat(f"kidiq_with_mom_work-{design.__name__}", design, 1000, 5)
        for design in (
            linear.kidscore_interaction_c,
            linear.kidscore_interaction_c2,
            linear.kidscore_interaction_z,
            linear.kidscore_mom_work,
        )
    ),
    linear_flat("mesquite-mesquite", linear.mesquite, 1e4, 8),
    *(
        linear_flat(f"mesquite-{model}", logmesquite(*names), 100, 2 + len(names))
        for model, names in {
            "logmesquite": (
                *("diam1", "diam2", "canopy_height", "total_height", "density", "group"),
            ),
            "logmesquite_logvolume": ("volume",),
            "logmesquite_logva": ("volume", "area", "group"),
            "logmesquite_logvas": (
                *("volume", "area", "shape", "total_height", "density", "group"),
            ),
            "logmesquite_logvash": ("volume", "area", "shape", "total_height", "group"),
        }.items()
    ),
    *(linear_flat(f"nes{year}-nes", linear.nes, 100, 10) for year in range(1972, 2001, 4)),
    linear_flat("sesame_data-sesame_one_pred_a", linear.sesame, 1000, 3),
    Posterior("sblrc-blr", regression(linear.blr, 10.0), 6),
    Posterior("sblri-blr", regression(linear.blr, 10.0), 6),
    Posterior("arK-arK", linear.ar_k, 7),
    Posterior(
        "kilpisjarvi_mod-kilpisjarvi", linear.kilpisjarvi, 3, "sigma flat -> HalfNormal(100)"
    ),
    Posterior("diamonds-diamonds", linear.diamonds, 26),
]


def radon(data: str, counties: int) -> Iterator[Posterior]:
    """Yield the posteriors of the radon data, whose effects double the variables of counties."""
    yield Posterior(f"{data}-radon_pooled", hierarchical.radon_pooled, 3)
    county = hierarchical.radon_county_intercept
    yield Posterior(f"{data}-radon_county_intercept", county, counties + 2)
    for builder, dims in (
        (hierarchical.radon_partially_pooled, counties + 3),
        (hierarchical.radon_variable_intercept, counties + 4),
        (hierarchical.radon_hierarchical_intercept, counties + 5),
        (hierarchical.radon_variable_slope, counties + 4),
        (hierarchical.radon_variable_intercept_slope, 2 * counties + 5),
    ):
        for form in ("centered", "noncentered"):
            name = f"{data}-{builder.__name__}_{form}"
            yield Posterior(name, builder(form == "centered"), dims)


HIERARCHIES = [
    Posterior("eight_schools-eight_schools_centered", hierarchical.eight_schools_centered, 10),
    Posterior(
        "eight_schools-eight_schools_noncentered", hierarchical.eight_schools_noncentered, 10
    ),
    *radon("radon_mn", 85),
    *radon("radon_all", 386),
    Posterior("radon_mod-radon_county", hierarchical.radon_county, 389),
    Posterior("pilots-pilots", hierarchical.pilots, 18),
    Posterior(
        "rats_data-rats_model",
        hierarchical.rats,
        65,
        "sigma_y, sigma_alpha, sigma_beta flat -> HalfNormal(100)",
    ),
    Posterior("dugongs_data-dugongs_model", hierarchical.dugongs, 4),
]

SERIES_AND_PROCESSES = [
    Posterior("arma-arma11", time_series.arma11, 4),
    Posterior(
        "garch-garch11",
        time_series.garch11,
        4,
        "mu flat -> Normal(0, 100); alpha0 flat on (0, inf) -> HalfNormal(100)",
    ),
    Posterior("rstan_downloads-prophet", time_series.prophet, 62),
    Posterior(
        "uk_drivers-state_space_stochastic_level_stochastic_seasonal",
        time_series.uk_drivers,
        389,
        "seasonal[1:11] flat -> Normal(0, 1); beta, lambda flat -> Normal(0, 10); mu[1] flat on "
        "mean(y) +- 3 sd -> Normal(mean(y), 3 sd(y)), without bounds on mu[t]",
    ),
    Posterior("gp_pois_regr-gp_pois_regr", gaussian_processes.gp_pois_regr, 13),
    Posterior("gp_pois_regr-gp_regr", gaussian_processes.gp_regr, 3),
    Posterior("mcycle_gp-accel_gp", gaussian_processes.accel_gp, 66),
    Posterior(
        "mcycle_splines-accel_splines",
        gaussian_processes.accel_splines,
        82,
        "bs flat -> Normal(0, 1000); bs_sigma flat -> Normal(0, 100)",
    ),
    Posterior(
        "state_wide_presidential_votes-hierarchical_gp", gaussian_processes.hierarchical_gp, 933
    ),
]

STATES_AND_MIXTURES = [
    Posterior("hmm_example-hmm_example", hidden_markov.hmm_example, 4),
    Posterior("bball_drive_event_0-hmm_drive_0", hidden_markov.hmm_drive_0, 6),
    Posterior("bball_drive_event_1-hmm_drive_1", hidden_markov.hmm_drive_1, 6),
    Posterior(
        "hmm_gaussian_simulated-hmm_gaussian",
        hidden_markov.hmm_gaussian,
        14,
        "mu flat on ordered -> Normal(18, 20) restricted; sigma flat -> HalfNormal(10)",
    ),
    Posterior("iohmm_reg_simulated-iohmm_reg", hidden_markov.iohmm_reg, 29),
    Posterior("low_dim_gauss_mix-low_dim_gauss_mix", mixtures.low_dim_gauss_mix, 5),
    Posterior(
        "low_dim_gauss_mix_collapse-low_dim_gauss_mix_collapse",
        mixtures.low_dim_gauss_mix_collapse,
        5,
    ),
    Posterior("normal_2-normal_mixture", mixtures.normal_mixture, 3),
    Posterior("normal_5-normal_mixture_k", mixtures.normal_mixture_k, 14),
    Posterior("three_docs1200-ldaK2", mixtures.lda_k2, 7),
]

EQUATIONS_AND_GROWTH = [
    Posterior("hudson_lynx_hare-lotka_volterra", differential_equations.lotka_volterra, 8),
    Posterior(
        "one_comp_mm_elim_abs-one_comp_mm_elim_abs",
        differential_equations.one_comp_mm_elim_abs,
        4,
    ),
    Posterior("sir-sir", differential_equations.sir, 4),
    Posterior("soil_carbon-soil_incubation", differential_equations.soil_incubation, 6),
    Posterior("loss_curves-losscurve_sislob", growth.losscurve_sislob, 15),
    Posterior("ecdc0401-covid19imperial_v2", growth.covid19imperial, 51),
    Posterior("ecdc0501-covid19imperial_v2", growth.covid19imperial, 51),
]

COUNTS = [
    Posterior("Rate_1_data-Rate_1_model", counts.rate_1, 1),
    Posterior("Rate_2_data-Rate_2_model", counts.rate_2, 2),
    Posterior("Rate_3_data-Rate_3_model", counts.rate_3, 1),
    Posterior("Rate_4_data-Rate_4_model", counts.rate_4, 2),
    Posterior("Rate_5_data-Rate_5_model", counts.rate_5, 1),
    Posterior("Survey_data-Survey_model", counts.survey, 1),
    Posterior("GLM_Binomial_data-GLM_Binomial_model", counts.glm_binomial, 3),
    Posterior("GLM_Poisson_Data-GLM_Poisson_model", counts.glm_poisson, 4),
    Posterior("GLMM_Poisson_data-GLMM_Poisson_model", counts.glmm_poisson, 45),
    Posterior("GLMM_data-GLMM1_model", counts.glmm1, 237),
    Posterior("seeds_data-seeds_model", counts.seeds, 26),
    Posterior("seeds_data-seeds_stanified_model", counts.seeds_stanified, 26),
    Posterior("seeds_data-seeds_centered_model", counts.seeds_centered, 26),
    Posterior("surgical_data-surgical_model", counts.surgical, 14),
]

WIDE_LOGIT = "alpha, beta flat -> Normal(0, 10)"
LOGISTIC = [
    *(
        Posterior(f"wells_data-{model}", wells(*names), 1 + len(names), WIDE_LOGIT)
        for model, names in {
            "wells_dist100_model": ("dist100",),
            "wells_dist100ars_model": ("dist100", "arsenic"),
            "wells_dae_model": ("dist100", "arsenic", "educ4"),
            "wells_interaction_model": ("dist100", "arsenic", "dist100:arsenic"),
            "wells_interaction_c_model": (*("c_dist100", "c_arsenic", "c_dist100:c_arsenic"),),
            "wells_dae_c_model": ("c_dist100", "c_arsenic", "c_dist100:c_arsenic", "educ4"),
            "wells_daae_c_model": (
                *("c_dist100", "c_arsenic", "c_dist100:c_arsenic", "assoc", "educ4"),
            ),
            "wells_dae_inter_model": (
                *("c_dist100", "c_arsenic", "c_educ4"),
                *("c_dist100:c_arsenic", "c_dist100:c_educ4", "c_arsenic:c_educ4"),
            ),
        }.items()
    ),
    Posterior("wells_data-wells_dist", logistic.wells_dist, 2, "beta flat -> Normal(0, 10)"),
    Posterior("nes_logit_data-nes_logit_model", logistic.nes_logit, 2, WIDE_LOGIT),
    Posterior("dogs-dogs", logistic.dogs, 3),
    Posterior("dogs-dogs_log", logistic.dogs_log, 2),
    Posterior("dogs-dogs_hierarchical", logistic.dogs_hierarchical, 2),
    Posterior("dogs-dogs_nonhierarchical", logistic.dogs_nonhierarchical, 65),
    Posterior("election88-election88_full", logistic.election88, 90),
]

ITEMS_AND_ANIMALS = [
    Posterior("irt_2pl-irt_2pl", item_response.irt_2pl, 144),
    Posterior("bones_data-bones_model", item_response.bones, 13),
    Posterior("lsat_data-lsat_model", item_response.lsat, 1006),
    Posterior("fims_Aus_Jpn_irt-2pl_latent_reg_irt", item_response.latent_reg_irt, 531),
    Posterior("sat-hier_2pl", item_response.hier_2pl, 669),
    Posterior("M0_data-M0_model", capture_recapture.m0, 2),
    Posterior("Mt_data-Mt_model", capture_recapture.mt, 4),
    Posterior("Mb_data-Mb_model", capture_recapture.mb, 3),
    Posterior("Mh_data-Mh_model", capture_recapture.mh, 388),
    Posterior("Mth_data-Mth_model", capture_recapture.mth, 394),
    Posterior("Mtbh_data-Mtbh_model", capture_recapture.mtbh, 154),
    Posterior("butterfly-multi_occupancy", capture_recapture.multi_occupancy, 106),
]

TABLE = (
    *REGRESSIONS,
    *HIERARCHIES,
    *SERIES_AND_PROCESSES,
    *STATES_AND_MIXTURES,
    *EQUATIONS_AND_GROWTH,
    *COUNTS,
    *LOGISTIC,
    *ITEMS_AND_ANIMALS,
)
POSTERIORS = {posterior.name: posterior for posterior in TABLE}
# With the targets on which samplers are compared.
ALL = {**POSTERIORS, **TARGETS}
