"""Bugs in the folders adaptation and model."""

from tests.mutants.mutant import Rows

ROWS: Rows = [
    (
        "adaptation/fit_at_tops",
        "tests/adaptation/test_fit_at_tops.py",
        [
            ("spread = _SHRINK * spread", "spread = spread"),
            ("< np.log(_NEAR_SCALE)", "< np.inf"),
            ("len(tops) > _MOST_TOPS or astray > _ASTRAY * len(order)", "len(tops) > _MOST_TOPS"),
            ("len(tops) > _MOST_TOPS or astray > _ASTRAY * len(order)", "astray > _ASTRAY * len(order)"),
            ("float(value[i] - normal.log_density", "float(value[i] + normal.log_density"),
            (".sum() < end.shape[1] for top in tops", ".sum() < 0 for top in tops"),
            ("if is_mostly_flat(target, start, compiled):", "if False:"),
            ("scale = climbing_scale(target, end[np.nanargmax(value)], spread)", "scale = spread"),
            ("not found.complete or found.unresolved or found.share[light.modes :].sum() > _SMALL", "not found.complete or found.unresolved"),
            ("not found.complete or found.unresolved or", "not found.complete or"),
            ("if found.modes == light.modes:", "if True:"),
            ("is None or not _is_near(light, target, held_out)", "is None"),
            ("max(found.discrepancy, discrepancy_of(found.log_ratio_draws, beyond)) <= NEAR", "found.discrepancy <= NEAR"),
            ("except NanDensityError:", "except ZeroDivisionError:"),
            ("    if has_light_tail(tried[-1]):\n        return tried[-1]\n    best", "    best"),
            ("        if has_light_tail(tried[-1]):\n            return tried[-1]\n", ""),
            ("min(tried, key=lambda fit: largest_weight(fit.log_ratio_draws))", "tried[-1]"),
            ("return best if largest_weight(best.log_ratio_draws) <= _BOUNDED else None", "return best"),
            ("return Attempt(fitted, target.evaluations)", "return Attempt(fitted, 0)"),
            ("effort = _EFFORT.times(share)", "effort = _EFFORT"),
            ("max(least, int(share * usual))", "int(share * usual)"),
        ],
    ),
    (
        "adaptation/target_density",
        "tests/adaptation/test_target_density.py",
        [
            ('equation.params.get("length", 1) * sum(map(operations, parts))', "sum(map(operations, parts))"),
            ("return prod(equation.invars[0].aval.shape[i] for i in summed)", "return 1"),
            ("if equation.primitive.name in _SUMS else 1", "if False else 1"),
            ("self.size, ndim)))) / self.size", "self.size, ndim))))"),
            ("max(each, 1.0), _LEAST_SHARE, 1.0)", "max(each, 1.0), 0.0, 1.0)"),
            ("(low | self.nan_is_zero) & np.isnan(terms", "np.isnan(terms"),
            ("np.max(terms.log_prior) - NEGLIGIBLE", "np.max(terms.log_prior) - NEGLIGIBLE / 2"),
        ],
    ),
    (
        "adaptation/missing",
        "tests/adaptation/test_ascent.py",
        [
            ("way = way[missing.above(way)]", "way = way[:0]"),
            ("one is not None and target.evaluations < most:", "one is not None:"),
            ("if len(way):", "if True:"),
            ("weigh(missing.log_density, one.normal, None, own)", "weigh(target.log_density, one.normal, None, own)"),
            ("- normal.log_density(both[higher]", "+ normal.log_density(both[higher]"),
            ("step[~(np.abs(step) <= _LONGEST)] = 0.0", "step[:] = 0.0"),
            ("higher = int(value[1] > value[0])", "higher = 1"),
        ],
    ),
    (
        "base/programs",
        "tests/base/test_double_precision.py",
        [
            ("if memory_maps() > _MOST_MAPS:", "if False:"),
            ("    if not other_threads():\n        for", "    if True:\n        for"),
        ],
    ),
    (
        "adaptation/trajectories",
        "tests/adaptation/test_trajectories.py",
        [
            ("momentum = momentum + step / 2 * state.slope", "momentum = momentum + step * state.slope"),
            ("(step if i < count - 1 else step / 2)", "step"),
            ("energy += (np.square(momentum)", "energy -= (np.square(momentum)"),
            ("return _State(z, value.copy(), slope @ scale)", "return _State(z, value.copy(), slope @ scale.T * 0.0)"),
            ("< energy  # never", "< np.inf  # never"),
        ],
    ),
    (
        "pipeline/short_road",
        "tests/pipeline/test_short_road.py",
        [
            ("settings.free_transition and", "True and"),
            ("not settings.reject_nan and", ""),
            ("settings.fixed_steps is None", "True"),
            (' and settings.audit != "levels"', ""),
            ("smooth and not likelihood_has_jumps(compiled)", "smooth"),
            (' and request.options.reference == "auto"', ""),
            ("found if has_light_tail(fitted) else by_proposals(found, fitted)", "found"),
            ("found if has_light_tail(fitted) else by_proposals(found, fitted)", "by_proposals(found, fitted)"),
        ],
    ),
    (
        "pipeline/trial",
        "tests/pipeline/test_short_road.py",
        [
            ("particles=max(plan.particles, int(np.ceil(pool * draws)))", "particles=plan.particles"),
            ("particles=max(plan.particles, int(np.ceil(pool * draws)))", "particles=int(np.ceil(pool * draws))"),
            ("steps = _STEPS_WITH_PROPOSALS", "steps = 1"),
        ],
    ),
    (
        "model/log_concavity",
        "tests/model/test_log_concavity.py",
        [
            ("(ps.TrueDiv, 1): _SCALED", "(ps.TrueDiv, 1): _AFFINE | _SCALED"),
            ("(ps.Add, 0): _AFFINE", "(ps.Add, 0): _AFFINE | _SCALED"),
            ("operation is ps.Mul and _is_half(node.inputs[1 - place])", "operation is ps.Mul"),
            ("if len(dependent) != 1 or dependent[0] >= len(concave)", "if not dependent or dependent[0] >= len(concave)"),
            ("distributions.GammaRV: (set(), _SCALE)", "distributions.GammaRV: (_SCALE, _SCALE)"),
            ("forms.get(other) is Form.LOG_AFFINE", "True"),
            ("operation in (ps.Add, ps.Sub) and forms == {Form.AFFINE}", "operation in (ps.Add, ps.Sub)"),
            ("Form.AFFINE if before == [Form.AFFINE] else None", "before[0]"),
            ("any(transforms[rv] is not None for rv in free)", "False"),
            ("all(form is Form.FREE for form in rest)", "True"),
            ("model.observed_RVs + model.potentials)", "model.observed_RVs)"),
            ("before[0] if len(set(before)) == 1 else None", "before[0]"),
        ],
    ),
    (
        "adaptation/configurations",
        "tests/adaptation/test_configurations.py",
        [
            ("pairs = True\n", "return\n"),
            ("/ (count * (count - 1))", "/ (count * count * count)"),
            ("mass = np.add.reduceat(ratio, first) / count", "mass = np.add.reduceat(ratio, first) / count.max()"),
            ("< np.log(_REST)", "< 0"),
            ("while len(self.log_mass) < self.most:\n            log_mass", "while True:\n            log_mass"),
        ],
    ),
    (
        "adaptation/conditional_peak",
        "tests/adaptation/test_configurations.py",
        [
            ("better = found.log_density >= local.log_density[climbing]", "better = found.log_density >= -np.inf"),
            ("volume = np.linalg.slogdet(scale)[1]", "volume = -np.linalg.slogdet(scale)[1]"),
            ("local.log_density[bad], local.slope[bad] = -np.inf, 0.0", "local.log_density[bad], local.slope[bad] = 0.0, 0.0"),
        ],
    ),
    (
        "adaptation/conditional_peak",
        "tests/adaptation/test_conditional_peak.py",
        [("unit = 1 / np.sqrt(np.maximum(diagonal, _LEAST_CURVATURE))", "unit = diagonal**0.0")],
    ),
    (
        "paths/configuration_mixture",
        "tests/paths/test_configuration_mixture.py",
        [
            ("np.linalg.slogdet(scale)[1]", "np.linalg.slogdet(scale)[0]"),
            ("jnp.where(same.any(axis=1), found, -jnp.inf)", "found"),
            ("rng.chisquare(nu, (draws, 1)) / nu", "rng.chisquare(nu, (draws, 1)) / (nu - 2)"),
        ],
    ),
    (
        "pipeline/look_at_configurations",
        "tests/pipeline/test_look_at_configurations.py",
        [
            ("found.log_evidence - _ERRORS * found.mcse <= most", "found.log_evidence - _ERRORS * found.mcse >= most"),
            ("if not found.complete:", "if found is None:"),
            ("if hearing.objection:", "if False:"),
        ],
    ),
    (
        "adaptation/missing",
        "tests/adaptation/test_missing.py",
        [
            ("_SHARP * (LEAST_PEAK - height)", "LEAST_PEAK - height"),
            ("(LEAST_PEAK - height)", "(height - LEAST_PEAK)"),
            ("np.asarray(height > LEAST_PEAK)", "np.asarray(height > 0)"),
            ("+ np.log(LEAST_MASS)", ""),
            ("bool(self.above(top)[0]) and self", "self"),
            ("- found.typical_log_z", ""),
        ],
    ),
    (
        "adaptation/peak_mass",
        "tests/adaptation/test_peak_mass.py",
        [
            ("+ np.log(len(components))", ""),
            ("mass = float(logsumexp(log_weight) - np.log(count))", "mass = float(logsumexp(log_weight))"),
            ("np.minimum(log_weight, heaviest[0])", "log_weight"),
            ("len(heaviest) < LEAST_ESS", "len(heaviest) < 1"),
            ("log_density > value - _FALL", "log_density > value - 8 * _FALL"),
            ("np.maximum(right, left)", "np.minimum(right, left)"),
            ("top + (right - left) / 2", "top"),
            ("top + (right - left) / 2", "top - (right - left) / 2"),
            ("for _ in range(_HALVINGS)", "for _ in range(0)"),
            ("np.where(low, between, outer)", "np.where(low, outer, between)"),
        ],
    ),
    (
        "adaptation/support",
        "tests/adaptation/test_support.py",
        [
            ("float(np.log(inside / drawn))", "float(np.log(inside / n))"),
            ("np.log(min(self.inside / len(self.position), 1.0))", "0.0"),
            ("reached.family[order], int(", "np.arange(n), int("),
            ("inside < min(WANTED, n) and drawn < most", "inside < 1 and drawn < most"),
            ("np.concatenate([*found, position[~possible]])[:n]", "position"),
            ("np.log(inside / (_EFFECTIVE * n))", "np.log(len(every) / (_EFFECTIVE * n))"),
            ("float(beta * log_u.max() + np.log(weight.mean()))", "float(beta * log_u.max() + np.log(weight[weight > 0].mean()))"),
            ("weight = np.exp(beta * (log_u - log_u.max()))", "weight = np.exp(log_u - log_u.max())"),
            ("start = Start(every[chosen], chosen, inside", "start = Start(every[chosen], np.arange(n), inside"),
        ],
    ),
    (
        "adaptation/flat_likelihood",
        "tests/adaptation/test_support.py",
        [
            ("<= _BY_STEPS + _BY", "<= _BY"),
            ("_BY_STEPS + _BY_ROUNDING * np.abs(ratio)", "_BY_STEPS"),
            ("<= _BY_STEPS + _BY_ROUNDING * np.abs(ratio)", "<= -1.0"),
            ("position[possible], beta) for beta in (0.0, 1.0)", "position[possible], beta) for beta in (1.0, 1.0)"),
            ("flat = moved & _are_equal", "flat = _are_equal"),
            ("np.where(flat.all(axis=0), 0.0, flat.mean(axis=0))", "flat.mean(axis=0)"),
            ("max(along.max(), flat.all(axis=1).mean())", "flat.all(axis=1).mean()"),
            ("max(along.max(), flat.all(axis=1).mean())", "along.max()"),
            ("_are_equal(*slopes)[possible]", "_are_equal(*slopes)"),
            ("return bool(silent) and depends_on_some(compiled, silent)", "return False"),
            ("np.roll(position, 1, axis=0)", "position"),
        ],
    ),
    (
        "adaptation/infinite_evidence",
        "tests/pipeline/test_awkward_likelihoods.py tests/adaptation/test_infinite_evidence.py",
        [
            ("_LEAST_SLOPE = -0.02", "_LEAST_SLOPE = -2.0"),
            ("if peak.log_mass[0] < mass or", "if peak.log_mass[0] > mass or"),
            ("_ROUNDING = 1.0", "_ROUNDING = np.inf"),
            ("np.arange(25)", "np.arange(0)"),
            ("reference.max() - middle, _DISTANCES[0]", "_DISTANCES[0], 0.0"),
            ("[deviations, -deviations]", "[deviations / 1e6, -deviations / 1e6]"),
            ("(near) - peak.log_density", "(near) - density.log_density(near[::-1])"),
            ("(fall > 0) & ", ""),
            (" & (fall < _MOST_FALL)", ""),
            ("2 * len(density.real), axis=0)", "2 * len(density.real), axis=0) + 1"),
            ("peak.scale[0].T", "peak.scale[0] ** 2"),
        ],
    ),
    (
        "adaptation/preconditioner",
        "tests/sampling/test_extreme_scales.py",
        [("np.sqrt(weight @ (x / unit) ** 2)", "np.sqrt(weight @ x**2) / unit")],
    ),
    (
        "model/spatial",
        "tests/model/test_spatial.py",
        [
            ("- (n - 1) * pt.log(sigma)", "- n * pt.log(sigma)"),
            ("0.5 * (log_det + np.log(n)", "0.5 * (log_det"),
            ("np.sqrt(tau * (1 - alpha * value))", "(tau * (1 - alpha * value))"),
            ("sigma * within + spread * standard[..., :1]", "sigma * within"),
            ("nodes * np.log(2 * np.pi)", "(nodes - 1) * np.log(2 * np.pi)"),
        ],
    ),
    (
        "model/seeded_draws",
        "tests/model/test_prior_draws.py",
        [("    with _DRAWING:", "    if True:")],
    ),
    (
        "model/violation",
        "tests/model/test_violation.py",
        [
            ("low - high if rising else high - low", "high - low if rising else low - high"),
            ("return first + second if together else pt.minimum(first, second)", "return first + second"),
            ("yield condition, holds", "yield condition, True"),
        ],
    ),
    (
        "evidence/levels",
        "tests/evidence/test_levels.py",
        [("np.log(inside.mean()) - levels * np.log(2)", "np.log(inside.mean()) - levels")],
    ),
    (
        "model/failed_draw",
        "tests/model/test_failed_draw.py",
        [("tried = _TRIED if parents else 1", "tried = 1")],
    ),
    (
        "adaptation/witnesses",
        "tests/adaptation/test_witnesses.py",
        [
            ("np.delete(position, _HELD_OUT, axis=0)", "position"),
            ("pilot.ancestor[_HELD_OUT]", "pilot.ancestor[1::4]"),
            ("2 * _PAIRS * int(pilot.cost[-1])", "_PAIRS * int(pilot.cost[-1])"),
        ],
    ),
    (
        "adaptation/plan",
        "tests/adaptation/test_plan.py",
        [
            ("np.sqrt(pilot.discrepancy * pilot.tau / pilot.cost)", "np.sqrt(pilot.discrepancy * pilot.tau * pilot.cost)"),
            ("variance * steps / planned - log_reference_mass", "variance * steps / planned + log_reference_mass"),
            ("relative = np.exp(exponent) - 1", "relative = exponent"),
            ("(_PLANNED_ERROR * target_mcse) ** 2", "(target_mcse) ** 2"),
            ("np.log(particles / _DRAWS)", "np.log(particles * _DRAWS)"),
        ],
    ),
    (
        "adaptation/mode_mixture",
        "tests/adaptation/test_mode_mixture.py tests/paths/test_draws.py",
        [
            ("(draws, nu)) ** 2).sum(axis=1)", "(draws, nu - 1)) ** 2).sum(axis=1)"),
            ("jnp.sqrt(nu / chi_squared)", "nu / chi_squared"),
            ("component % 2 == 1", "component % 2 == 0"),
            ("xp.log1p(squared / nu)", "xp.log1p(squared)"),
            ("each = xp.stack([normal, student_t], axis=1) - log_volume", "each = xp.stack([normal, student_t], axis=1) + log_volume"),
        ],
    ),
    (
        "adaptation/mixture_weights",
        "tests/adaptation/test_mixture_weights.py",
        [
            ("np.log(share) + log_prior, np.log1p(-share) + fitted", "np.log(share) + log_prior, fitted"),
            ("weight = weight / weight.sum()", "weight = weight**1.05 / (weight**1.05).sum()"),
        ],
    ),
    (
        "adaptation/tuning",
        "tests/adaptation/test_tuning.py",
        [
            ("return 1 + 2 * first / (1 - ratio)", "return 1 + first / (1 - ratio)"),
            ("np.sqrt(wanted / rejected), 0.25", "np.sqrt(rejected / wanted), 0.25"),
            ('return {"n_steps": level + 1}', 'return {"n_steps": level}'),
            ("np.log(cost * tau), accept, stuck", "np.log(tau), accept, stuck"),
            ("_MEMORY * old + (1 - _MEMORY) * score", "(1 - _MEMORY) * old + _MEMORY * score"),
            ("self.cost - part.cost(part.level) + part.cost(level)", "self.cost"),
            ("1.2 * d**-0.25 if", "1.2 * d**-0.5 if"),
        ],
    ),
    (
        "adaptation/curvature",
        "tests/adaptation/test_curvature.py",
        [
            ("(second + second.T) / 2", "second + second.T"),
            ("np.maximum(np.abs(value), 1.0)", "np.maximum(value, 1.0)"),
            ("np.maximum(np.abs(value), 1.0)", "np.abs(value)"),
            ("        if not np.isfinite(second).all():\n            return scale\n", ""),
            ("-(above - below) / (2 * length", "-(above - below) / (length"),
            ("(ess * (weight @ along**2) + whole) / (ess + 1)", "weight @ along**2"),
            ("curved * variance * (axes.T", "0.0 * variance * (axes.T"),
            (".max() > _FAR_STEP", ".max() > np.inf"),
        ],
    ),
    (
        "adaptation/fit_mixture",
        "tests/adaptation/test_fit_mixture.py::TestNeck",
        [("key=lambda pair: pair[1].discrepancy", "key=lambda pair: -pair[1].discrepancy")],
    ),
    (
        "adaptation/fit_mixture",
        "tests/adaptation/test_fit_mixture.py::TestManyModes",
        [
            ("max(search.evaluations, most)", "search.evaluations"),
            ("max(search.evaluations, most)", "1_000_000"),
        ],
    ),
    (
        "pipeline/session",
        "tests/pipeline/test_session.py",
        [
            ("effective_witnesses(found.ancestor) < _FAMILIES", "False"),
            ("for p in [*every, every[-1]]) * each", "for p in every[:0]) * each"),
            ("if self._is_smooth:\n            each", "if True:\n            each"),
            ("found = pooled(every, rng)", "pass"),
        ],
    ),
    (
        "pipeline/audit",
        "tests/pipeline/test_split_levels.py",
        [
            ("1 - _UNSEEN ** (1 / hearing.hole.witnesses)", "_UNSEEN ** (1 / hearing.hole.witnesses)"),
        ],
    ),
    (
        "pipeline/fitted_mixture",
        "tests/pipeline/test_split_levels.py",
        [
            ("if is_too_low(highest, levels.log_evidence, families, LEVEL_OF_CHOICES):", "if False:"),
            ("is_too_low(highest, levels.log_evidence, families, LEVEL", "is_too_low(highest, levels.log_evidence, 1.0, LEVEL"),
            ("return found_by.miss(log_ratio_to, draws, LEVEL_OF_CHOICES)", 'return ""'),
        ],
    ),
    (
        "pipeline/result",
        "tests/pipeline/test_split_levels.py",
        [('if w.kind == "levels"', 'if w.kind == "none"')],
    ),
    (
        "pipeline/fitted_mixture",
        "tests/pipeline/test_fitted_mixture.py",
        [
            ("most = _budget(session, surveyed)", "most = 0.0"),
            ("evaluations > RUN_SHARE * spent", "evaluations < RUN_SHARE * spent"),
            ("session.settings.free_transition and _is_long", "_is_long"),
        ],
    ),
    (
        "adaptation/fitted_reference",
        "tests/adaptation/test_fit_mixture.py tests/adaptation/test_fitted_reference.py",
        [
            ("return np.asarray(np.median(means", "return np.asarray(np.mean(means"),
            ("return typical if typical > -np.inf else self.log_z", "return typical"),
            ("_median_of_means(log_mode) - _LOG_FACTOR", "_median_of_means(log_mode)"),
            ("np.maximum(log_rest, log_evidence)", "log_rest"),
            ("np.where(known, share, self.least_share())", "np.where(known, share, 0.0)"),
            ("if unmet > share), default=1.0)", "if unmet < share), default=1.0)"),
        ],
    ),
    (
        "adaptation/preconditioner",
        "tests/adaptation/test_preconditioner.py",
        [
            ("np.sqrt(_deviation(weight, x)) / np.sqrt(", "_deviation(weight, x) / ("),
            ("else g * deviation", "else g / deviation"),
            ("except np.linalg.LinAlgError", "except ZeroDivisionError"),
            ("clipped - weight @ clipped", "clipped - clipped.mean(axis=0)"),
            ("covariance: np.ndarray = (x.T * weight) @ x", "covariance: np.ndarray = x.T @ x / len(x)"),
            ("inverse = (vector / np.sqrt(value)) @ vector.T", "inverse = (vector / value) @ vector.T"),
        ],
    ),
    (
        "adaptation/laplace_reference",
        "tests/adaptation/test_fit_reference.py",
        [
            ("np.linalg.cholesky(np.linalg.inv(curvature))", "np.linalg.inv(np.linalg.cholesky(curvature))"),
        ],
    ),
    (
        "adaptation/preconditioner",
        "tests/adaptation/test_fit_reference.py",
        [
            ("scale @ (scale.T @ slope) if", "scale.T @ (scale @ slope) if"),
            ("draws[finite].mean(axis=0) + step", "draws[finite].mean(axis=0) - step"),
        ],
    ),
    (
        "adaptation/fitted_reference",
        "tests/adaptation/test_fitted_reference.py tests/adaptation/test_fit_mixture.py",
        [
            ("max(from_draws, log_mean(log_ratio_particles) - log_z, 0.0)", "max(from_draws, 0.0)"),
            ("log_mean(2 * log_ratio_draws) - 2 * log_z", "log_mean(2 * log_ratio_draws) - log_z"),
            ("np.array([share, 1 - share])", "np.array([1 - share, share])"),
            ("self.discrepancy * share / _INTERVALS", "self.discrepancy * share"),
        ],
    ),
    (
        "adaptation/particles",
        "tests/adaptation/test_particles.py",
        [
            ("logsumexp(log_u) - np.log(log_u.size)", "logsumexp(log_u)"),
            ("second=_correlation(start, end)", "second=_correlation(middle, end)"),
            ("return 2 * len(candidates) * self.tuner.cost", "return len(candidates) * self.tuner.cost"),
            ("jax.random.split(jax.random.fold_in(key, number))", "jax.random.split(key)"),
            ("weight = np.exp(log_u - log_u.max())", "weight = np.exp(1.05 * (log_u - log_u.max()))"),
        ],
    ),
    (
        "adaptation/pilot",
        "tests/adaptation/test_pilot.py",
        [
            ("log_z += step.log_mean", "log_z = step.log_mean"),
            ("np.sqrt(self.discrepancy).sum()", "np.sqrt(self.discrepancy.sum())"),
            ("max(wanted) / 2", "max(wanted)"),
            ("np.square(share).sum(), 1.0)", "np.square(share).sum(), np.inf)"),
            ("np.clip(self.log_z_mcse**2, ", "np.clip(0.0, "),
            ("log_reference_mass=start.log_mass", "log_reference_mass=0.0"),
            ("transition=by_temperature(betas[1:], tuners)", "transition=by_temperature(betas[:-1], tuners)"),
            ("increments = np.expm1(self.discrepancy) * np.maximum(self.tau, 1.0)", "increments = np.expm1(self.discrepancy)"),
            ("np.repeat(np.exp(log_z - log_z.max()), n)", "np.ones(n * len(pilots))"),
            ("p.ancestor + i * most", "p.ancestor"),
            ("float(logsumexp(log_z) - np.log(len(pilots)))", "float(log_z.max())"),
        ],
    ),
    (
        "adaptation/moment_matching",
        "tests/adaptation/test_moment_matching.py",
        [
            ("(1 - knots[:, None]) * s0 + knots[:, None] * s1", "knots[:, None] * s0 + (1 - knots[:, None]) * s1"),
            ("natural=state.natural + share * change", "natural=state.natural + change"),
            ("np.concatenate([knots, np.arange(2.0, extra + 2)])", "np.concatenate([knots, np.ones(extra)])"),
        ],
    ),
    (
        "adaptation/wider_component",
        "tests/adaptation/test_wider_component.py",
        [
            ("(factor**2 - 1) * slope", "(factor - 1) * slope"),
            ("np.linalg.solve(part, covariance[columns]).T", "covariance[columns].T"),
        ],
    ),
    (
        "adaptation/modes",
        "tests/adaptation/test_modes.py",
        [
            ("height[pairs].min(axis=1) - _DEPTH", "height[pairs].max(axis=1) - _DEPTH"),
            ('np.argsort(-count, kind="stable")', 'np.argsort(count, kind="stable")'),
        ],
    ),
    (
        "adaptation/peaks",
        "tests/adaptation/test_peaks.py::TestSameTop",
        [
            ("> _NEAR * self.spread).any()", "> np.inf).any()"),
            ("target.log_density(middle[None])[0] >= valley", "True"),
        ],
    ),
    (
        "adaptation/fit_mixture",
        "tests/adaptation/test_peaks.py::TestSameTop",
        [("barren = [] if new else [*barren, top]", "barren = []")],
    ),
    (
        "model/unconstrained_draws",
        "tests/model/test_prior_draws.py",
        [("{**data, **(changed or {})}", "changed or {}")],
    ),
    (
        "model/unconstrained_draws",
        "tests/model/test_unconstrained_draws.py",
        [("2 * pt.log(b) - x", "pt.log(b) - x")],
    ),
    (
        "model/exchangeable",
        "tests/model/test_exchangeable.py",
        [("return not self.of_simplex and len(own) == 1", "return not self.of_simplex")],
    ),
    (
        "model/family",
        "tests/model/test_family.py",
        [("ancestors(free_given_data(model))", "ancestors(model.free_RVs)")],
    ),
    (
        "between/constraints",
        "tests/sampling/test_constraint_bayes_factor.py::test_orders_that_make_no_sense",
        [("-size <= i < size", "True"), ("len(places) < len(order)", "len(places) < 0")],
    ),
    (
        "base/storable",
        "tests/base/test_storable.py",
        [("isinstance(v, datetime | timedelta)", "isinstance(v, datetime)")],
    ),
    (
        "adaptation/peaks",
        "tests/adaptation/test_peaks.py",
        [
            ("component.mean + shrink * centred", "component.mean + centred"),
            ("beta=_POWER", "beta=1.0"),
            ("int(search.share * _BY_LIKELIHOOD)", "0"),
            ("curved is not None and _has_widths(curved, wide)", "curved is not None"),
            ("return weigh(log_density,", "return weigh(target.log_density,"),
            ("or share_of_single(end, scale) > _SINGLE", ""),
            ("np.linalg.solve(scale, end.T).T", "end"),
            ("nearest > np.sqrt(end.shape[1])", "nearest > 9 * np.sqrt(end.shape[1])"),
            ("query(whitened, k=[2])", "query(whitened, k=[3])"),
        ],
    ),
    (
        "adaptation/climb",
        "tests/adaptation/test_climb.py",
        [
            ("direction += (alphas[i] - beta)", "direction += (alphas[i] + beta)"),
            ("slope @ scale @ scale.T if", "slope @ scale.T @ scale if"),
            ("climbs.slope[of]", "climbs.slope[: of.sum()]"),
            ("*(part[active] for part in given)", "*(part[: active.sum()] for part in given)"),
        ],
    ),
    (
        "adaptation/tune_at_target",
        "tests/adaptation/test_tune_at_target.py",
        [
            ("np.append(survey.tau[:-1], tuner.tau)", "np.append(survey.tau, tuner.tau)"),
        ],
    ),
    (
        "adaptation/variational_normal",
        "tests/adaptation/test_variational_normal.py",
        [
            ("np.concatenate([z, -z])", "np.concatenate([z, z])"),
        ],
    ),
    (
        "model/conditional_prior",
        "tests/model/test_conditional_prior.py",
        [
            ("np.arange(start, start + BATCH).clip(max=count - 1)", "np.arange(BATCH).clip(max=count - 1)"),
        ],
    ),
    (
        "model/extremes",
        "tests/model/test_extremes.py",
        [
            ("jnp.max(jax.lax.stop_gradient(x), axis", "jnp.max(x, axis"),
            ("jnp.where(jnp.isfinite(shift), shift, 0.0)", "shift"),
            ("return -largest(-x, axis)", "return largest(x, axis)"),
        ],
    ),
    (
        "model/copy_model",
        "tests/model/test_copy_model.py tests/model/test_location_scale.py",
        [
            ("own[shared].set_value(constant.data, borrow=True)", "pass"),
            ("elif not np.array_equal(shared.get_value(borrow=True), constant.data)", "elif False"),
            ("fromkeys(model.rvs_to_initial_values)", "fromkeys(model.rvs_to_initial_values, 0.1)"),
        ],
    ),
    (
        "model/prior_draws",
        "tests/model/test_prior_draws.py tests/model/test_restricted_priors.py",
        [
            ("math.prod(shape[:-1]) * math.lgamma(shape[-1] + 1)", "math.lgamma(shape[-1] + 1)"),
            ("math.sqrt((1 - rate) / (rate * draws))", "math.sqrt((1 - rate) / draws)"),
        ],
    ),
    (
        "model/prior_draws",
        "tests/model/test_restricted_priors.py tests/model/test_prior_draws.py::TestPriorDraws",
        [
            ("return ascending if transform.ascending else ascending[..., ::-1]", "return ascending"),
            ("pt.sort(draws, axis=-1)", "pt.sort(draws, axis=1)"),
            ("batches.append([v[accepted] for v in batch.unconstrained])", "batches.append(list(batch.unconstrained))"),
            ("rate = accepted / draws", "rate = accepted / (draws / 2)"),
        ],
    ),
    (
        "between/constraints",
        "tests/sampling/test_constraint_bayes_factor.py",
        [
            ("-math.lgamma(size + 1)", "-math.lgamma(size)"),
        ],
    ),
    (
        "between/constraints",
        "tests/sampling/test_constraint_bayes_factor.py::TestPriorMass",
        [
            ("self._cdf(compiled, rv, self.upper) - self._cdf(compiled, rv, self.lower)", "self._cdf(compiled, rv, self.upper)"),
            ("float(np.log(mass).sum())", "float(np.log(mass).mean())"),
        ],
    ),
    (
        "model/location_scale",
        "tests/model/test_location_scale.py::test_moved_positions_have_the_same_values",
        [
            ("weight * location + scale**weight * position", "weight * location + scale ** (1 - weight) * position"),
        ],
    ),
    (
        "model/location_scale_transform",
        "tests/model/test_location_scale.py tests/model/test_overflowing_prior.py",
        [
            ("return (1 - self._weight) * pt.log(", "return self._weight * pt.log("),
            ("mu + sigma ** (1 - self._weight) * (value - self._weight * mu)", "mu + sigma ** (1 - self._weight) * (value - mu)"),
            ("pt.cumsum(super().backward(value, *inputs), axis=-1)", "pt.cumsum(super().backward(value, *inputs), axis=0)"),
            ("join(first[0], others[0]), join(first[1], others[1])", "join(first[0], first[0]), join(first[1], others[1])"),
            ("*shapes, *standard", "*shapes, *standard[:1], 2 * standard[1]"),
            ("change_value_transforms(without_initial_values(model), found) if found else None", "None"),
        ],
    ),
    (
        "model/log_densities",
        "tests/model/test_overflowing_prior.py",
        [
            ("standard = [rv for rv in rvs if is_standardised(rv, model.rvs_to_transforms[rv])]", "standard = []"),
            ("pt.isnan(total) & huge", "pt.isnan(total)"),
            ("pt.isnan(total) & huge", "huge"),
        ],
    ),
    (
        "model/prior_draws",
        "tests/model/test_overflowing_prior.py",
        [("any((np.abs(v) > HUGE).any() for v in batch.draws)", "False")],
    ),
    (
        "model/underflow",
        "tests/model/test_unconstrained_draws.py",
        [("EQ) else first", "EQ) else second")],
    ),
    (
        "model/underflow",
        "tests/model/test_overflowing_prior.py",
        [("isinstance(node.op.scalar_op, Sign) and", "False and")],
    ),
    (
        "model/prior_draws",
        "tests/model/test_overflowing_prior.py",
        [("close |= (x == y) | (np.isnan(x) & np.isnan(y))", "close |= x == y")],
    ),
    (
        "model/conditional_normal",
        "tests/model/test_conditional_normal.py::test_the_density_is_that_of_the_model tests/model/test_conditional_normal.py::test_maps_are_inverse tests/model/test_conditional_normal.py::test_a_normal_likelihood_leaves_nothing",
        [
            ("log_volume + draw.log_volume", "draw.log_volume"),
            ("(slope + w * (centre - a))", "(slope + w * centre)"),
            ("LogTerms(terms.log_prior + log_volume, terms", "LogTerms(terms.log_prior, terms"),
            ("cholesky(precision).T @ apart", "cholesky(precision) @ apart"),
        ],
    ),
    (
        "model/normal_block",
        "tests/model/test_normal_draw.py",
        [
            ("-jnp.trace(scaled) / 2", "-jnp.trace(scaled)"),
            ("right_change - change @ draw.mean", "right_change + change @ draw.mean"),
            ("jnp.diag(jnp.diagonal(scaled) / 2)", "jnp.diag(jnp.diagonal(scaled))"),
        ],
    ),
    (
        "model/normal_scores",
        "tests/model/test_normal_scores.py",
        [
            ("(norm.logpdf(z) - log_density).sum()", "(log_density - norm.logpdf(z)).sum()"),
            (".set(r + self.log_scale)", ".set(r - self.log_scale)"),
            ("jnp.where(r < 0, tail, -tail)", "tail"),
        ],
    ),
    (
        "model/cholesky",
        "tests/model/test_cholesky.py",
        [
            ("scaled / 2, scaled)", "scaled, scaled)"),
            ("corner = -_product(", "corner = _product("),
            ("jnp.tril(change) + jnp.tril(change, -1).mT", "change"),
        ],
    ),
    (
        "nested/prior_transform",
        "tests/nested/test_prior_transform.py::test_conditional_and_multivariate_priors",
        [
            ("(factor @ _standard", "(factor.mT @ _standard"),
            ("pm.Beta.dist(a[..., :-1], later[..., 1:])", "pm.Beta.dist(a[..., :-1], later[..., :-1])"),
            ("fgraph.replace(draw, value.astype(draw.dtype), import_missing=True)", "pass"),
        ],
    ),
    (
        "model/log_densities",
        "tests/model/test_restricted_priors.py tests/model/test_compile.py::test_an_infinite_prior_density_is_no_density",
        [
            ("jnp.asarray(log_prior, jnp.float64) - log_mass", "jnp.asarray(log_prior, jnp.float64) + log_mass"),
            ("jnp.where(jnp.isposinf(log_prior), -jnp.inf, log_prior)", "log_prior"),
        ],
    ),
    (
        "model/unconstrained_draws",
        "tests/model/test_unconstrained_draws.py",
        [
            ("np.log(rng.standard_gamma(shape + 1, size)) - small", "np.log(rng.standard_gamma(shape, size)) - small"),
            ("draws -= _log_standard_gamma(rng, beta, size)", "draws -= _log_standard_gamma(rng, alpha, size)"),
            ("-rng.standard_exponential(shape) / np.asarray(alpha)", "-rng.standard_exponential(shape) * np.asarray(alpha)"),
        ],
    ),
    (
        "model/variables",
        "tests/model/test_discrete_support.py::test_supports",
        [
            ("(0, p.shape[-1] - 1)", "(0, p.shape[-1])"),
            ("pt.maximum(0, n - bad)", "pt.maximum(0, n - good)"),
        ],
    ),
    (
        "model/simulate",
        "tests/model/test_simulate.py",
        [
            ("zip(observed, inputs, strict=True)", "zip(observed, inputs[::-1], strict=True)"),
            ("values[len(free) :]", "values[: len(values) - len(free)]"),
        ],
    ),
    (
        "between/joint_space",
        "tests/between/test_joint_space.py tests/sampling/test_sample_bayes_factor.py::TestPseudoPriors::test_own_priors",
        [
            ("return own + self.only_second.log_density(x[self.columns])", "return own"),
            ("x[:, self.columns] = draws", "x[:, : draws.shape[1]] = draws"),
        ],
    ),
    (
        "posthoc/null_point",
        "tests/posthoc/test_savage_dickey.py::TestRandomParents::test_value",
        [
            ("1 if exact else draws", "1"),
        ],
    ),
    (
        "model/branches",
        "tests/model/test_branches.py",
        [
            ("rng.integers(0, self.terms, size=", "rng.integers(0, min(self.terms), size="),
            ("chosen = pt.switch(pt.eq(number, i), log(term), chosen)", "chosen = pt.switch(pt.eq(number, i), chosen, log(term))"),
        ],
    ),
]  # fmt: skip
