"""The table of bugs: by file, with the tests nearest to it."""

from tests.mutants.mutant import Mutant

# By file of the package: the tests, and the bugs, old text and new.
_TABLE: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "annealing/step_statistics": (
        "tests/annealing/test_step_statistics.py tests/annealing/test_loop.py",
        [
            ("new = log_weight + log_u", "new = log_weight"),
            ("2 * new, new + log_u]), axis=2)", "2 * new, new]), axis=2)"),
            ("share * velocity**2", "share * velocity"),
            ("info.nan.reshape(chains, -1).sum(axis=1)", "info.nan.reshape(chains, -1).mean(axis=1)"),
            ("+ before - 2 * log_w", "+ before - log_w"),
            ("[[np.log(particles)], log_w[:-1]]", "[[0.0], log_w[:-1]]"),
            ("log_sum_squared - 2 * log_sum +", "log_sum_squared - log_sum +"),
            ("xp.log(xp.isfinite(log_u).sum())", "xp.log(log_u.size)"),
        ],
    ),
    "annealing/step": (
        "tests/annealing/test_step.py tests/test_unbiasedness.py::TestWrongTwins",
        [
            ("jax.random.fold_in(key, first + i)", "jax.random.fold_in(key, i)"),
        ],
    ),
    "annealing/resampling": (
        "tests/annealing/test_resampling.py",
        [
            ("(jnp.arange(m) + jax.random.uniform(key, (chains, 1)))", "(jnp.arange(m) + 0.5)"),
            ("jnp.log(threshold * m)", "jnp.log(threshold)"),
            ("index + m * jnp.arange(chains)[:, None]", "index"),
            ("log_sum[:, None] - jnp.log(m), rows)", "log_sum[:, None], rows)"),
            ("np.cumsum(weight) / weight.sum()", "np.cumsum(weight**1.05) / (weight**1.05).sum()"),
            ("(np.arange(draws) + rng.uniform()) / draws", "np.arange(draws) / draws"),
            ("np.exp(log_weight - log_weight.max()), draws)", "np.exp(1.05 * (log_weight - log_weight.max())), draws)"),
        ],
    ),
    "transitions/hmc": (
        "tests/transitions/test_random_numbers.py tests/transitions/test_moments.py",
        [
            ("accept_reject(uniform[:, 1]", "accept_reject(uniform[:, 0]"),
            ("gain = kinetic_energy(end) - kinetic_energy(momentum)", "gain = kinetic_energy(end)"),
            ("change - gain, proposal", "change + gain, proposal"),
            ("0.5 * (momentum**2)", "(momentum**2)"),
            ("return drift(position, momentum, -_FIRST_DRIFT), momentum", "return position, momentum"),
            ("1 - 2 * _FIRST_DRIFT, 2 * _FIRST_DRIFT)", "1 - 2 * _FIRST_DRIFT, 1 - 2 * _FIRST_DRIFT)"),
        ],
    ),
    "transitions/generalized_hmc": (
        "tests/transitions/test_moments.py tests/transitions/test_invariance.py",
        [
            ("jnp.sqrt(1 - self.momentum_persistence**2)", "(1 - self.momentum_persistence)"),
            ("path.evaluate(position), -end)", "path.evaluate(position), end)"),
            ("accept_reject(uniform[:, 1]", "accept_reject(uniform[:, 0]"),
            ("return state._replace(auxiliary=-state.auxiliary)", "return state"),
        ],
    ),
    "transitions/mala": (
        "tests/transitions/test_moments.py",
        [
            ("0.5 * self.step_size, apply", "self.step_size, apply"),
            ("0.5 * (back**2 - noise**2)", "0.5 * (noise**2 - back**2)"),
            ("back = noise + forward + proposal.auxiliary", "back = noise + proposal.auxiliary"),
        ],
    ),
    "transitions/metropolis": (
        "tests/transitions/test_random_numbers.py tests/transitions/test_metropolis.py",
        [
            ("math.sqrt(2) * jax", "1.4 * jax"),
            ("accepted = uniform < probability", "accepted = uniform > probability"),
            ("jnp.exp(jnp.minimum(log_accept, 0.0))", "jnp.exp(jnp.minimum(log_accept, 0.1))"),
            ("return z @ scale.T if", "return z @ scale if"),
            ("return g @ scale if", "return g @ scale.T if"),
        ],
    ),
    "transitions/independence": (
        "tests/transitions/test_random_numbers.py tests/transitions/test_moments.py",
        [
            ("jax.random.uniform(key_accept", "jax.random.uniform(key_draw"),
            ("log_ratio - other, proposal", "log_ratio, proposal"),
        ],
    ),
    "transitions/gibbs": (
        "tests/transitions/test_gibbs.py tests/transitions/test_discrete_invariance.py",
        [
            ("jnp.mod(state.position[:, j] - low[i] + shift, size[i])", "jnp.mod(state.position[:, j] + shift, size[i])"),
            ("logits + jax.random.gumbel(key, logits.shape)", "logits"),
        ],
    ),
    "transitions/discrete_walk": (
        "tests/transitions/test_discrete_walk.py tests/transitions/test_discrete_invariance.py",
        [
            ("jnp.sign(z) * jnp.ceil(jnp.abs(z))", "jnp.ceil(jnp.abs(z))"),
        ],
    ),
    "transitions/by_temperature": (
        "tests/transitions/test_by_temperature.py",
        [
            ("(1 - share) * leaf[left] + share * leaf[right]", "leaf[left]"),
        ],
    ),
    "transitions/composition": (
        "tests/transitions/test_composition.py tests/pipeline/test_irreversible_kernels.py",
        [
            ("for kernel in reversed(self.kernels)", "for kernel in self.kernels"),
        ],
    ),
    "paths/geometric": (
        "tests/paths/test_paths.py",
        [
            ("beta == 0, 0.0, beta * terms.log_likelihood", "beta == 0, 0.0, beta**2 * terms.log_likelihood"),
            ("(stop - start) * terms.log_likelihood", "(stop - start) * terms.log_prior"),
            ("(1 - beta) * terms.log_reference +", "terms.log_reference +"),
            ("return terms.log_target - terms.log_reference", "return terms.log_target"),
        ],
    ),
    "paths/between_models": (
        "tests/paths/test_paths.py",
        [
            ("(1 - beta) * terms.log_first)", "terms.log_first)"),
            ("change = terms.log_second - terms.log_first", "change = terms.log_second"),
        ],
    ),
    "paths/references": (
        "tests/paths/test_draws.py tests/paths/test_references.py",
        [
            ("return np.asarray(self.mean + _multiply(self.scale, z))", "return np.asarray(self.mean + 1.01 * _multiply(self.scale, z))"),
            ("return np.asarray(self.mean + _multiply(self.scale, z / np.sqrt(mixing)))", "return np.asarray(self.mean + 1.01 * _multiply(self.scale, z / np.sqrt(mixing)))"),
            ("return jnp.asarray(self.mean + _multiply(self.scale, z))", "return jnp.asarray(self.mean + 1.01 * _multiply(self.scale, z))"),
            ("jax.random.chisquare(key_mixing, nu, (draws, 1)) / nu", "jax.random.chisquare(key_mixing, nu - 1, (draws, 1)) / nu"),
            ("constant = 0.5 * d * np.log(2 * np.pi)", "constant = 0.5 * np.log(2 * np.pi)"),
            ("-0.5 * (nu + d) * xp.log1p", "-0.5 * (nu + 1) * xp.log1p"),
            ("-xp.log(whitening).sum()", "xp.log(whitening).sum()"),
            ("return z @ scale.T if np.ndim(scale) == 2", "return z @ scale if np.ndim(scale) == 2"),
        ],
    ),
    "paths/q_path": (
        "tests/paths/test_paths.py",
        [
            ("(1 - self.q) * (terms.log_ratio - self.log_level)", "(1 - self.q) * terms.log_ratio"),
            ("inside + beta * self.log_level)", "inside)"),
            ("jnp.where(a > 0, rising, falling) / (1 - self.q)", "jnp.where(a > 0, rising, falling)"),
            ("rising = a + jnp.log(beta + (1 - beta) * small)", "rising = a + jnp.log(beta * small + 1 - beta)"),
        ],
    ),
    "paths/moment_spline": (
        "tests/paths/test_paths.py",
        [
            ("(1 - share) * natural[segment] + share * natural[segment + 1]", "share * natural[segment] + (1 - share) * natural[segment + 1]"),
            ("(natural[segment + 1] - natural[segment]) / width_of(self.knots, segment)", "natural[segment + 1] - natural[segment]"),
        ],
    ),
    "paths/gaussian": (
        "tests/paths/test_gaussian.py",
        [
            ("beta * (1 - beta) * jnp.outer", "beta * jnp.outer"),
            ("0.5 * shift @ self.mean + log_volume", "shift @ self.mean + log_volume"),
            ("x @ shift - 0.5 *", "x @ shift - "),
        ],
    ),
    "paths/mixture_reference": (
        "tests/paths/test_mixture_reference.py tests/paths/test_draws.py",
        [
            ("rng.permutation(np.concatenate(parts))", "np.concatenate(parts)"),
            ("xp.log(self.weight)[:, None]", "0 * xp.log(self.weight)[:, None]"),
        ],
    ),
    "schedules/fixed": (
        "tests/schedules/test_schedules.py",
        [
            ("return linear_schedule(steps) ** power", "return linear_schedule(steps) ** (1 / power)"),
            ("np.geomspace(first, 1.0, steps)", "np.linspace(first, 1.0, steps)"),
            ("0.5 * scale * (2 * linear", "scale * (2 * linear"),
            ("[0, 500, 4000, 10000]", "[0, 500, 10000, 4000]"),
        ],
    ),
    "schedules/variational": (
        "tests/schedules/test_schedules.py",
        [
            ("PchipInterpolator(barrier / barrier[-1], betas)", "PchipInterpolator(betas, barrier / barrier[-1])"),
            ("steps * (1 - max_step * clipped.sum()) / rest", "steps / rest"),
        ],
    ),
    "schedules/optimal_binned": (
        "tests/schedules/test_schedules.py",
        [
            ("np.cumsum(length**2 / np.diff(betas))", "np.cumsum(length / np.diff(betas))"),
            ("weights / weights.sum() if", "weights**2 / (weights**2).sum() if"),
        ],
    ),
    "adaptation/plan": (
        "tests/adaptation/test_plan.py",
        [
            ("np.sqrt(pilot.discrepancy * pilot.tau / pilot.cost)", "np.sqrt(pilot.discrepancy * pilot.tau * pilot.cost)"),
            ("variance * steps / planned - log_reference_mass", "variance * steps / planned + log_reference_mass"),
            ("relative = np.exp(exponent) - 1", "relative = exponent"),
            ("(_PLANNED_ERROR * target_mcse) ** 2", "(target_mcse) ** 2"),
            ("np.log(particles / _DRAWS)", "np.log(particles * _DRAWS)"),
        ],
    ),
    "adaptation/mode_mixture": (
        "tests/adaptation/test_mode_mixture.py tests/paths/test_draws.py",
        [
            ("(draws, nu)) ** 2).sum(axis=1)", "(draws, nu - 1)) ** 2).sum(axis=1)"),
            ("jnp.sqrt(nu / chi_squared)", "nu / chi_squared"),
            ("component % 2 == 1", "component % 2 == 0"),
            ("xp.log1p(squared / nu)", "xp.log1p(squared)"),
            ("each = xp.stack([normal, student_t], axis=1) - log_volume", "each = xp.stack([normal, student_t], axis=1) + log_volume"),
        ],
    ),
    "adaptation/mixture_weights": (
        "tests/adaptation/test_mixture_weights.py",
        [
            ("np.log(share) + log_prior, np.log1p(-share) + fitted", "np.log(share) + log_prior, fitted"),
            ("weight = weight / weight.sum()", "weight = weight**1.05 / (weight**1.05).sum()"),
        ],
    ),
    "adaptation/tuning": (
        "tests/adaptation/test_tuning.py",
        [
            ("return 1 + 2 * first / (1 - ratio)", "return 1 + first / (1 - ratio)"),
            ("np.sqrt(wanted / rejected), 0.25", "np.sqrt(rejected / wanted), 0.25"),
            ('return {"n_steps": level + 1}', 'return {"n_steps": level}'),
        ],
    ),
    "adaptation/curvature": (
        "tests/adaptation/test_curvature.py",
        [
            ("(second + second.T) / 2", "second + second.T"),
            ("-(above - below) / (2 * _DIFFERENCE", "-(above - below) / (_DIFFERENCE"),
        ],
    ),
    "evidence/ais": (
        "tests/evidence/test_ais.py tests/evidence/test_estimators.py",
        [
            ("logsumexp(log_weight) - np.log(n)),", "logsumexp(log_weight) - np.log(n - 1)),"),
            ("rse_squared *= units.size / (units.size - 1)", "rse_squared *= 1.0"),
            ("np.sqrt(np.log1p(rse_squared))", "np.sqrt(2 * rse_squared)"),
            ("acceleration = (deviation**3)", "acceleration = -(deviation**3)"),
            ("student_t.ppf(0.975, count - 1)", "student_t.ppf(0.975, count)"),
            ("np.sqrt((len(left_out) - 1) * np.var(left_out))", "np.sqrt(np.var(left_out))"),
            ("means: np.ndarray = logsumexp(rows, axis=-1) - np.log(population_size)", "means: np.ndarray = logsumexp(rows, axis=-1)"),
        ],
    ),
    "evidence/agreement": (
        "tests/evidence/test_agreement.py",
        [
            ("len(values) - 1) > LEVEL / 3", "len(values)) > LEVEL / 3"),
            ("norm.isf(LEVEL / 3) * self.mcse", "norm.isf(LEVEL) * self.mcse"),
            ("weights=errors**-2)", "weights=errors)"),
            ("return self.coefficient / self.steps", "return self.coefficient"),
            ("_SHORT * count >= longest", "count >= longest"),
            ("norm.isf(LEVEL / 3 / max(len(earlier), 1))", "norm.isf(LEVEL / 3)"),
        ],
    ),
    "evidence/diagnostics": (
        "tests/evidence/test_diagnostics.py",
        [
            ("return float(max(by_ess, median_and_robust_sd(finite)[1] ** 2))", "return float(by_ess)"),
            ("factor = max(2.0, (mcse / target) ** 2)", "factor = max(2.0, mcse / target)"),
            ("if mcse > target:", "if mcse > 2 * target:"),
            ("if ess < MIN_ESS:", "if ess < 0:"),
            ("if k <= MAX_PARETO_K or np.isnan(k):", "if k <= 1 or np.isnan(k):"),
        ],
    ),
    "evidence/heavy_tail": (
        "tests/evidence/test_heavy_tail.py tests/results/test_container.py",
        [
            ("np.hypot(estimate.mcse, np.log1p(missing_share(units, k)))", "estimate.mcse"),
            ("(1 - min(k, _LARGEST)) * mean", "(1 + min(k, _LARGEST)) * mean"),
        ],
    ),
    "evidence/bennett": (
        "tests/evidence/test_bennett.py tests/evidence/test_estimators.py",
        [
            ("np.log(n_reverse / a.size)", "np.log(a.size / n_reverse)"),
            ("reverse = -np.logaddexp(0, b - log_z + log_odds)", "reverse = -np.logaddexp(0, b - log_z)"),
            ("f.var() / (n_forward * f.mean() ** 2) + r.var()", "f.var() / (n_forward * f.mean() ** 2) - r.var()"),
            ("(s**2).mean() - (t * (1 - t)).mean()", "s.mean() - (t * (1 - t)).mean()"),
        ],
    ),
    "evidence/ladder": (
        "tests/evidence/test_ladder.py",
        [
            ("correction = -float(", "correction = float("),
            ("(h * (mean[1:] + mean[:-1])).sum()) / 2", "(h * mean[1:]).sum())"),
            ("count = 1 / (share**2).sum(axis=1)", "count = 1 / share.sum(axis=1)"),
        ],
    ),
    "evidence/nested_sampling": (
        "tests/evidence/test_nested_sampling.py",
        [
            ('side="left") - np.arange(len(death))', 'side="left") - np.arange(len(death)) + 1'),
            ("- np.log(2) + log_likelihood", "+ log_likelihood"),
            ("freedom = len(runs) - 1", "freedom = len(runs)"),
            ("float(log_z.std(ddof=1))", "float(log_z.std(ddof=1)) / 2"),
        ],
    ),
    "evidence/mean_ratio": (
        "tests/evidence/test_mean_ratio.py tests/evidence/test_estimators.py",
        [
            ("ratio.var() / ratio.mean() ** 2", "ratio.var() / ratio.mean()"),
            ("relative_variance / draws_ess(ratio)", "relative_variance / ratio.size"),
            ("draws_ess(ratio) / (1 + relative_variance)", "draws_ess(ratio)"),
        ],
    ),
    "evidence/point_density": (
        "tests/evidence/test_posterior_density.py tests/results/test_savage_dickey.py",
        [
            ("value - np.log(_MASS), -np.inf)", "value, -np.inf)"),
        ],
    ),
    "model/conditional_prior": (
        "tests/model/test_conditional_prior.py",
        [
            ("np.arange(start, start + BATCH).clip(max=count - 1)", "np.arange(BATCH).clip(max=count - 1)"),
        ],
    ),
    "model/prior_draws": (
        "tests/model/test_prior_draws.py tests/model/test_restricted_priors.py",
        [
            ("math.prod(shape[:-1]) * math.lgamma(shape[-1] + 1)", "math.lgamma(shape[-1] + 1)"),
            ("math.sqrt((1 - rate) / (rate * draws))", "math.sqrt((1 - rate) / draws)"),
        ],
    ),
    "model/constraints": (
        "tests/sampling/test_constraint_bayes_factor.py",
        [
            ("-math.lgamma(size + 1)", "-math.lgamma(size)"),
        ],
    ),
    "pipeline/reverse": (
        "tests/pipeline/test_irreversible_kernels.py tests/pipeline/test_reverse.py",
        [
            ("forward.transition.reversal()", "forward.transition"),
            ("log_reference - run.log_weight", "log_reference + run.log_weight"),
            ("-ais(-self.backward).log_evidence", "ais(self.backward).log_evidence"),
        ],
    ),
    "pipeline/result": (
        "tests/pipeline/test_result.py",
        [
            ("mcse=reverse.mcse if reverse else estimate.mcse", "mcse=estimate.mcse"),
            ("step_size=forward.step_size[::-1]", "step_size=forward.step_size"),
        ],
    ),
    "pipeline/trial": (
        "tests/pipeline/test_trial.py tests/pipeline/test_bad_plans.py",
        [
            ("steps=trial.steps,", "steps=1,"),
        ],
    ),
    "pipeline/from_draws": (
        "tests/pipeline/test_from_draws.py",
        [
            ("return draws[:, :first], draws[:, min(first, n - 1) :]", "return draws[:, :first], draws"),
        ],
    ),
    "pipeline/constraint_mass": (
        "tests/sampling/test_constraint_bayes_factor.py tests/pipeline/test_from_draws.py",
        [
            ("~(slacks > 0).all(axis=1)", "~(slacks > 0).any(axis=1)"),
            ("outside / (share * ess)", "outside / ess"),
        ],
    ),
    "results/container": (
        "tests/results/test_container.py",
        [
            ("wider = estimate.mcse / narrow if narrow > 0 else 1.0", "wider = 1.0"),
            ("self.log_reference - log_ratio if self.reverse", "self.log_reference + log_ratio if self.reverse"),
            ("np.maximum(stats.velocity_squared - stats.velocity**2, 0.0)", "stats.velocity_squared"),
        ],
    ),
    "results/compare_models": (
        "tests/results/test_compare_models.py",
        [
            ("d = a.log_evidence - b.log_evidence", "d = b.log_evidence - a.log_evidence"),
            ("np.hypot(a.log_evidence - a.interval[0], b.interval[1] - b.log_evidence)", "np.hypot(a.log_evidence - a.interval[0], b.log_evidence - b.interval[0])"),
            ("log_z + error * noise", "log_z + noise"),
        ],
    ),
    "results/average": (
        "tests/results/test_inclusion.py",
        [
            ("total = float(weight @ variances) + between", "total = float(weight @ variances)"),
        ],
    ),
    "results/inclusion": (
        "tests/results/test_inclusion.py",
        [
            ("return np.asarray(inside - outside)", "return np.asarray(inside)"),
        ],
    ),
    "results/prior_sensitivity": (
        "tests/results/test_prior_sensitivity.py",
        [
            ('value = own.log_bayes_factor + table["log_ratio"]', 'value = own.log_bayes_factor - table["log_ratio"]'),
        ],
    ),
    "results/savage_dickey": (
        "tests/results/test_savage_dickey.py",
        [
            ("value = prior.log_mean - posterior.log_mean", "value = posterior.log_mean - prior.log_mean"),
        ],
    ),
    "results/sensitivity": (
        "tests/results/test_sensitivity.py",
        [
            ("np.log(2) * power * covariance / sd", "power * covariance / sd"),
        ],
    ),
    "rbm/state_sums": (
        "tests/rbm/test_state_sums.py",
        [
            ("return logsumexp(jax.lax.map(log_sum, blocks))", "return log_sum(blocks[0])"),
            ("lambda a, b: old * a + b", "lambda a, b: a + b"),
            ("old * total.weight + p.sum()", "total.weight + p.sum()"),
            ("y = model.visible_bias + model.weights", "y = model.weights"),
            ("jnp.where(x >= 0, 1.0, decay)", "jnp.where(x >= 0, decay, 1.0)"),
            ("range(0, terms.shape[1], _CHUNK)", "range(0, _CHUNK, _CHUNK)"),
        ],
    ),
    "rbm/paths": (
        "tests/rbm/test_softplus_increment.py tests/rbm/test_paths.py",
        [
            ("return -2 * z * _horner", "return 2 * z * _horner"),
            ("jnp.where(size < 1, jnp.sign(d) * small, large)", "jnp.where(size < 1, small, large)"),
            ("return softplus_increment(x - d, d)", "return softplus_increment(x, d)"),
        ],
    ),
    "rbm/spline_path": (
        "tests/rbm/test_spline_path.py",
        [
            ("return jnp.asarray(sign * total)", "return jnp.asarray(total)"),
            ("terms.base + share * terms.linear + hidden", "terms.base + hidden"),
            ("(hidden * terms.slope).sum(axis=-1)) / width", "(hidden * terms.slope).sum(axis=-1))"),
        ],
    ),
    "rbm/moments": (
        "tests/rbm/test_moments.py",
        [
            ("(1 - beta) * a + beta * b for a, b", "beta * a + (1 - beta) * b for a, b"),
            ("visible.T @ hidden / len(visible)", "visible.T @ hidden"),
            ("share = share / share.sum()", "share = share"),
        ],
    ),
    "rbm/exact": (
        "tests/rbm/test_exact.py",
        [
            ("uniform * cumulative[-1]", "uniform"),
            ("model if model.n_hidden <= model.n_visible else", "model if model.n_hidden < 99 else"),
        ],
    ),
    "rbm/transitions": (
        "tests/rbm/test_transitions.py",
        [
            ("bernoulli(key_visible, jax.nn.sigmoid(visible_field(hidden)))", "bernoulli(key_hidden, jax.nn.sigmoid(visible_field(hidden)))"),
        ],
    ),
    "rbm/moment_spline": (
        "tests/rbm/test_moment_spline.py",
        [
            ("vh - np.outer(v, self.hidden) - np.outer(self.visible, h)", "vh - np.outer(v, self.hidden)"),
        ],
    ),
    "rbm/contrastive_divergence": (
        "tests/rbm/test_training.py",
        [
            ("w - rule.weight_decay * model.weights", "w + rule.weight_decay * model.weights"),
            ("fantasy if rule.persistent else state.fantasy", "state.fantasy"),
        ],
    ),
    "base/knots": (
        "tests/base/test_knots.py",
        [
            ("return knots[segment + 1] - knots[segment]", "return knots[segment] - knots[segment + 1]"),
            ('method="compare_all") - 1', 'method="compare_all")'),
        ],
    ),
    "base/batches": (
        "tests/base/test_batches.py",
        [
            ("np.concatenate(parts)[:n]", "np.concatenate(parts)"),
        ],
    ),
    "base/seeds": (
        "tests/base/test_seeds.py",
        [
            ("seed_sequence(seed).spawn(index + 1)[index]", "seed_sequence(seed).spawn(index + 1)[0]"),
        ],
    ),
    "execution/blocks": (
        "tests/execution/test_blocks.py",
        [
            ("-(-start.particles // (start.chains * m))", "start.particles // (start.chains * m)"),
            ("np.maximum(first.betas[1:], first.betas[:-1])", "first.betas[:-1]"),
            ("interrupted=len(results) < len(blocks)", "interrupted=False"),
        ],
    ),
    "execution/workers": (
        "tests/execution/test_workers.py",
        [
            ("return [results[i] for i in range(first)] or", "return [] or"),
            ("if attempts[i] == _ATTEMPTS:", "if attempts[i] == 1:"),
        ],
    ),
}  # fmt: skip

# Bugs that make no difference, or none that is worth a test, with the reason.
_REASONS: dict[str, str] = {}

MUTANTS = [
    Mutant(f"pymc_anneal/{file}.py", old, new, tuple(tests.split()), _REASONS.get(old, ""))
    for file, (tests, bugs) in _TABLE.items()
    for old, new in bugs
]
