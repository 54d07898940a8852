"""Bugs in what answers the questions behind a number, and in targets made of functions."""

from tests.mutants.mutant import Rows

ROWS: Rows = [
    (
        "model/functions",
        "tests/sampling/test_target.py::test_prior_transform",
        [
            ("0.5 * pt.erfc(-z / np.sqrt(2))", "0.5 * pt.erfc(-z)"),
            ("_ABOVE_ZERO, _BELOW_ONE)", "_ABOVE_ZERO, 1.0)"),
        ],
    ),
    (
        "evidence/given_density",
        "tests/evidence/test_given_density.py",
        [
            (" - pm.logp(pm.MvStudentT.dist(**start), x)", ""),
            ("wrong = np.isnan(values) | np.isposinf(values)", "wrong = np.isposinf(values)"),
            ("order == SMOOTH else (_NO_SEARCH,)", "order == SMOOTH else ()"),
        ],
    ),
    (
        "results/decompose",
        "tests/results/test_decompose.py",
        [
            ("gained = fit - (weights.weight - 1)", "gained = fit"),
            ("gained = fit - (weights.weight - 1)", "gained = fit + (weights.weight - 1)"),
            ("np.asarray(total * self.weight.shape[1] / draws)", "np.asarray(total)"),
            (
                "np.add.at(total, (rows, self.number), value.reshape(chains, draws))",
                "total[rows, self.number] = value.reshape(chains, draws)",
            ),
            (
                "units = influence.reshape(len(influence), -1, self.size).sum(axis=2)",
                "units = influence.reshape(len(influence), -1, 1).sum(axis=2)",
            ),
        ],
    ),
    (
        "results/occam",
        "tests/results/test_occam.py",
        [
            ("influence = log_prior + volume + (square - d) / 2", "influence = log_prior + volume"),
            ("degrees = n - 1 - np.arange(d)", "degrees = n - np.arange(d)"),
            ("[t.sum() + missing_constants", "[t.mean() + missing_constants"),
            ("if variable.discrete or ess <= d + 1:", "if ess <= d + 1:"),
        ],
    ),
    (
        "results/model_comparison",
        "tests/results/test_arviz_habits.py",
        [
            ('("p_worse", -1) if', '("p_worse", 1) if'),
            ('"se": details["mcse"],', '"se": error,'),
            ("trusted = bool(known[self.reference]), ", "trusted = True, "),
        ],
    ),
    (
        "sampling/intrinsic_bayes_factor",
        "tests/sampling/test_intrinsic_bayes_factor.py",
        [
            (
                "b.log_evidence - a.log_evidence for a, b",
                "a.log_evidence - b.log_evidence for a, b",
            ),
            ("between = left_out * r.var(ddof=1) / len(r)", "between = 0 * r.var(ddof=1) / len(r)"),
            ("float(np.sqrt(noisy.var() + left_out * again.var()))", "float(noisy.std())"),
            ("left_out * (weight * len(r)).var(ddof=1)", "(weight * len(r)).var(ddof=1)"),
        ],
    ),
    (
        "adaptation/fit_at_tops",
        "tests/sampling/test_update.py",
        [("search = replace(search, hints=hints)", "pass")],
    ),
    (
        "sampling/update",
        "tests/sampling/test_update.py",
        [
            ('settings["search_from"] = starts', "pass"),
            ("if compiled.ndim:", "if True:"),
        ],
    ),
    (
        "sampling/embed",
        "tests/sampling/test_embed.py",
        [
            ("old = old * (1 - entry)", "pass"),
            ("& ~placed", ""),
            ("best = np.argsort(-height)", "best = np.argsort(height)"),
        ],
    ),
    (
        "model/double_constants",
        "tests/model/test_double_constants.py",
        [
            ('{"f": "float64", ', "{"),
            ('"int64" if single', "variable.dtype if single"),
            ('"int64" if single else variable.dtype', '"int64"'),
            ('if isinstance(op, CAReduce) and op.dtype == "float32":', "if False:"),
        ],
    ),
    (
        "model/score_transforms",
        "tests/model/test_score_transforms.py",
        [
            ("_LINEAR, _CUBIC = 1.5976, 0.07056", "_LINEAR, _CUBIC = 1.5976, 0.0715"),
            ("+ 3 * _CUBIC * z**2", "+ 2 * _CUBIC * z**2"),
            ("pt.cumsum(shape[..., ::-1], axis=-1)[..., ::-1]", "pt.cumsum(shape, axis=-1)"),
            ("(log_weight[..., :-1] + log_left + log_slope)", "(log_weight[..., :-1] + log_slope)"),
            ("pt.log(_gamma_slope(t, shape))", "pt.log(_gamma_slope(t, 1.0))"),
            ("_STEPS = 14", "_STEPS = 7"),
            ("pt.switch(t > _FAR_BELOW, near, t)", "near"),
            ("above = pt.maximum(t, _FAR_BELOW)", "above = t"),
            ("-_softplus(log_odds) - _softplus(-log_odds)\n", "-_softplus(-log_odds)\n"),
            ("pt.log(value) - pt.log1p(-value)", "pt.log(value) + pt.log1p(-value)"),
        ],
    ),
    (
        "model/prior_draws",
        "tests/model/test_symbolic_draws.py",
        [
            ("broadcast_to(parameter, (*size,", "broadcast_to(parameter, (*size[:1],"),
            ("range(1, 1 + len(size) + core - drawn.ndim)", "range(len(size) + core - drawn.ndim)"),
            ("elif parameter.ndim <= core:", "else:"),
            ("if set(ancestors([new])) & batched.keys():", "if False:"),
            ("parameter.ndim - core == len(size) - 1", "True"),
        ],
    ),
    (
        "model/unconstrained_draws",
        "tests/model/test_small_shapes.py tests/model/test_unconstrained_draws.py",
        [
            ("[..., ::-1][..., 1:]", "[..., ::-1][..., :-1]"),
            ("draws[..., :-1] -= _log_standard", "draws[..., :-1] += _log_standard"),
        ],
    ),
    (
        "pipeline/choose_start",
        "tests/model/test_small_shapes.py",
        [
            ("if request.is_surveyed else None", "if True else None"),
            ("(ordered_model(own) or score_model(own))", "ordered_model(own)"),
            ("return request if not changed else", "return request if True else"),
        ],
    ),
    (
        "model/small_shapes",
        "tests/model/test_small_shapes.py",
        [
            ("min(values) <= _SMALL", "min(values) <= 2 * _SMALL"),
            ("if size < _LEAST:", "if size < 1:"),
            ("is not None and min(values)", "is None or min(values)"),
            ("(BetaScore(), (-2, -1))", "(BetaScore(), (-2,))"),
        ],
    ),
    (
        "adaptation/peaks",
        "tests/sampling/test_embed.py::test_hints_are_starts_of_the_search",
        [("if search.hints is not None:", "if search.hints is None and False:")],
    ),
    (
        "posthoc/plot_bf",
        "tests/posthoc/test_plot_bf.py",
        [
            ("d.log_mean - change", "d.log_mean + change"),
            ("change = 0.0 if column is None else", "change = 0.0 if True else"),
        ],
    ),
    (
        "nested/to_plots",
        "tests/nested/test_to_plots.py",
        [("log_mass = log_z - np.log(n) - log_l", "log_mass = log_z - log_l")],
    ),
    (
        "sampling/robustness",
        "tests/sampling/test_robustness.py",
        [
            ("_variance(u[:, split:] - s)", "_variance(s)"),
            (
                "0.5 * _relative(log_ratio), _relative(log_density)",
                "_relative(log_ratio), _relative(log_density)",
            ),
            (
                "null.prior.log_mean - null.posterior.density.log_mean",
                "null.posterior.density.log_mean - null.prior.log_mean",
            ),
            ("if others or not change.changed:", "if not change.changed:"),
            ('return row["verdict"] != "trust", row', 'return row["verdict"] == "trust", row'),
        ],
    ),
    (
        "results/robustness",
        "tests/sampling/test_robustness.py::test_summary_by_hand",
        [
            ('trusted = rows[rows["verdict"] == "trust"]', "trusted = rows"),
            ("float(logsumexp(value) - np.log(len(value)))", "float(value.mean())"),
        ],
    ),
    (
        "results/sequential",
        "tests/sampling/test_sequential.py",
        [
            ('row["lower"] >= np.log(stop)', 'row["upper"] >= np.log(stop)'),
            ("own & ~beaten", "own"),
            (
                "self.log_bayes_factor <= -np.log(self.threshold)",
                "self.log_bayes_factor <= np.log(self.threshold)",
            ),
        ],
    ),
    (
        "model/power_of_likelihood",
        "tests/sampling/test_fractional_evidence.py",
        [
            ("(power - 1) * total", "power * total"),
            (
                "*missing_terms(copy.observed_RVs), *copy.potentials]",
                "*missing_terms(copy.observed_RVs)]",
            ),
            ("[*missing_terms(copy.observed_RVs), ", "["),
            ("pt.switch(pt.isinf(total), -pt.inf, (power - 1) * total)", "(power - 1) * total"),
        ],
    ),
    (
        "model/g_prior",
        "tests/sampling/test_fractional_evidence.py::TestGPrior",
        [
            ("centred = matrix - matrix.mean(axis=0)", "centred = matrix"),
            ("np.sqrt(size) * inverse", "size * inverse"),
            ("inverse * np.sign(np.diag(inverse))", "inverse"),
        ],
    ),
    (
        "sampling/fractional_evidence",
        "tests/sampling/test_fractional_evidence.py::test_the_ratio_by_hand",
        [("value - below), float(value + above)", "value - above), float(value + below)")],
    ),
    (
        "posthoc/contrast_bayes_factor",
        "tests/posthoc/test_contrast_bayes_factor.py",
        [
            ("(y[:, self.pivot] - self.start - others) / own", "(y[:, self.pivot] - others) / own"),
            ("variance += float(slope**2 @", "variance += float(slope @"),
        ],
    ),
    (
        "posthoc/edge",
        "tests/posthoc/test_edge.py",
        [
            ("log_density(moved) - edge.log_jacobian(moved) - at_x", "log_density(moved) - at_x"),
            ("norm.logpdf(x, mean, sd) - log_mass", "norm.logpdf(x, mean, sd)"),
            ("np.outer(distance - b, slope)", "np.outer(distance + b, slope)"),
        ],
    ),
    (
        "posthoc/inclusion",
        "tests/posthoc/test_inclusion.py",
        [
            ("first.setdefault(_factors(name), name)", "first[frozenset([name])] = name"),
            ("own in m and not any(own < term for term in m)", "own in m"),
            ("with_it and m - {own} in there", "with_it"),
            (
                "inside = np.array([own in model for model in models])",
                "inside = np.array([own not in model for model in models])",
            ),
        ],
    ),
    (
        "results/pool_imputations",
        "tests/results/test_pool_imputations.py",
        [
            ("relative.var(ddof=1) / m", "relative.var(ddof=1)"),
            ("* (np.cbrt(1 + a * (t - a / 6)) - 1)", "* (np.cbrt(1 - a * (t - a / 6)) - 1)"),
            ("float(logsumexp(value) - np.log(len(value)))", "float(value.mean())"),
        ],
    ),
    (
        "sampling/count",
        "tests/sampling/test_count.py",
        [
            (
                "(np.diff(score[-_FALLING - 1 :]) < 0).all()",
                "(np.diff(score[-_FALLING - 1 :]) < 0).any()",
            ),
            ("score[-1] - max(score) < np.log(negligible)", "True"),
        ],
    ),
    (
        "sampling/pymc_sampler",
        "tests/sampling/test_pymc_sampler.py",
        [
            ("            **self.settings,\n", ""),
            ('given = {"initvals": initvals, **others}', 'given = {"initvals": initvals}'),
            ("if tune not in (None, 0, _DEFAULT_TUNE):", "if False:"),
        ],
    ),
    (
        "sampling/target",
        "tests/sampling/test_target.py::test_a_prior_that_does_not_match_its_draws",
        [("    _check_prior(log_prior, sample_prior, size)\n", "")],
    ),
    (
        "model/other_data",
        "tests/sampling/test_sequential.py",
        [
            ("if reason and not _why_not(model, {}):", "if False:"),
            ("tuple(fixed) == np.shape(value)", "True"),
        ],
    ),
    (
        "sampling/several_runs",
        "tests/sampling/test_sequential.py::TestArgumentsOfOneRun",
        [('if settings.get("checkpoint") is not None:', "if False:")],
    ),
    (
        "sampling/fractional_evidence",
        "tests/sampling/test_fractional_evidence.py",
        [("**_for_part(given)", "**given")],
    ),
    (
        "sampling/sample_models",
        "tests/sampling/test_sample_models.py::TestStopped",
        [("error.results = results", "error.results = {}")],
    ),
    (
        "between/audit_end",
        "tests/sampling/test_sample_bayes_factor.py::test_mass_out_of_reach_of_a_model_without_a_likelihood_is_not_trusted",
        [("share = float(is_outside(compiled.sample_prior(seed, _DRAWS)).mean())", "share = 0.0")],
    ),
]
