"""Bugs in the folders rbm, results, execution and base."""

from tests.mutants.mutant import Rows

ROWS: Rows = [
    (
        "execution/fingerprint",
        "tests/execution/test_fingerprint.py",
        [
            ('re.sub(" at 0x[0-9a-f]+", "", graph)', "graph"),
            ("texts = list(code.co_names), [code.co_code.hex()]", "texts = list(code.co_names), [str(len(code.co_code))]"),
            ("names += own", "pass"),
            ("texts.append(text)", "pass"),
            ("text = describe(constant)", "text = repr(constant)"),
            ("str | bytes | int | float | complex | None", "str | int | float | None"),
            ("yield from (text, value.__defaults__, value.__kwdefaults__)", "yield text"),
            ("if isinstance(v, _FOLLOWED))", "if False)"),
            ('yield getattr(value, "__dict__", None)', "yield None"),
            ("[value.func, value.args, value.keywords]", "[value.func]"),
            ("yield from (value.__func__, value.__self__)", "yield value.__func__"),
            ("sorted(map(inner, value))", "map(str, sorted(map(inner, value))[:1])"),
        ],
    ),
    (
        "base/arguments",
        "tests/base/test_arguments.py tests/pipeline/test_settings.py tests/pipeline/test_model_target.py",
        [
            ("not 0 < value <= most", "not 0 < value"),
            ("not 0 < value <= most", "not 0 <= value <= most"),
            ("isinstance(value, int | float | np.number) and not isinstance(value, bool)", "isinstance(value, int | float | np.number)"),
            ("if not isinstance(value, Mapping | None):", "if False:"),
        ],
    ),
    (
        "base/meter",
        "tests/base/test_meter.py",
        [
            ("found.evaluations - before", "found.evaluations"),
            ("spent = error.evaluations", "spent = 0"),
            ("self.evaluations - self._elsewhere", "self.evaluations"),
            ("before.evaluations + evaluations, before.seconds + seconds", "evaluations, seconds"),
        ],
    ),
    (
        "base/double_precision",
        "tests/base/test_double_precision.py",
        [
            ("                self.calls[get_ident()] -= 1", "                pass"),
            ('_config.update("jax_enable_x64", self.before)', "pass"),
            ("self.before = _of_process()", 'self.before = bool(_config.values["jax_enable_x64"])'),
            ("any(n and thread != get_ident() for", "any(False for"),
        ],
    ),
    (
        "rbm/state_sums",
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
    (
        "rbm/state_sums",
        "tests/rbm/test_state_sums.py tests/rbm/test_exact.py::TestHardCases",
        [
            ("shares = [np.exp(float(total.shift) - shift) for total in totals]", "shares = [1.0 for total in totals]"),
            ("jnp.concatenate([p @ lower.bits, p.sum() * upper])", "jnp.concatenate([p @ lower.bits, upper])"),
        ],
    ),
    (
        "rbm/paths",
        "tests/rbm/test_softplus_increment.py tests/rbm/test_paths.py",
        [
            ("return -2 * z * _horner", "return 2 * z * _horner"),
            ("jnp.where(size < 1, jnp.sign(d) * small, large)", "jnp.where(size < 1, small, large)"),
            ("return softplus_increment(x - d, d)", "return softplus_increment(x, d)"),
        ],
    ),
    (
        "rbm/paths",
        "tests/rbm/test_paths.py",
        [
            ("return step * terms.linear + hidden", "return step * terms.linear + 1.01 * hidden"),
            ("(1 - share) * self.reference_bias + share * self.model.visible_bias", "self.reference_bias + share * self.model.visible_bias"),
            ("return as_type_of(beta, terms.field) * terms.field", "return terms.field"),
        ],
    ),
    (
        "rbm/spline_path",
        "tests/rbm/test_spline_path.py",
        [
            ("return jnp.asarray(sign * total)", "return jnp.asarray(total)"),
            ("terms.base + share * terms.linear + hidden", "terms.base + hidden"),
            ("(hidden * terms.slope).sum(axis=-1)) / width", "(hidden * terms.slope).sum(axis=-1))"),
            ("low = jnp.maximum(start, knots[segment])", "low = knots[segment]"),
            ("slope=slope + change.hidden_bias", "slope=slope"),
        ],
    ),
    (
        "rbm/moments",
        "tests/rbm/test_moments.py",
        [
            ("(1 - beta) * a + beta * b for a, b", "beta * a + (1 - beta) * b for a, b"),
            ("visible.T @ hidden / len(visible)", "visible.T @ hidden"),
            ("share = share / share.sum()", "share = share"),
        ],
    ),
    (
        "rbm/exact",
        "tests/rbm/test_exact.py",
        [
            ("uniform * cumulative[-1]", "uniform"),
            ("model if model.n_hidden <= model.n_visible else", "model if model.n_hidden < 99 else"),
        ],
    ),
    (
        "rbm/transitions",
        "tests/rbm/test_transitions.py",
        [
            ("bernoulli(key_visible, jax.nn.sigmoid(visible_field(hidden)))", "bernoulli(key_hidden, jax.nn.sigmoid(visible_field(hidden)))"),
        ],
    ),
    (
        "rbm/moment_spline",
        "tests/rbm/test_moment_spline.py",
        [
            ("vh - np.outer(v, self.hidden) - np.outer(self.visible, h)", "vh - np.outer(v, self.hidden)"),
        ],
    ),
    (
        "rbm/moment_spline",
        "tests/rbm/test_moment_spline.py::TestMomentSpline tests/rbm/test_moment_spline.py::TestMomentFits::test_exactly",
        [
            ("np.diff(eta, axis=0) * np.diff(s, axis=0)", "np.diff(eta, axis=0) * s[1:]"),
            ("RBM(a - w @ self.hidden, b", "RBM(a + w @ self.hidden, b"),
        ],
    ),
    (
        "rbm/contrastive_divergence",
        "tests/rbm/test_training.py",
        [
            ("w - rule.weight_decay * model.weights", "w + rule.weight_decay * model.weights"),
            ("fantasy if rule.persistent else state.fantasy", "state.fantasy"),
        ],
    ),
    (
        "rbm/model",
        "tests/rbm/test_model.py",
        [
            ("np.log(ones / zeros)", "np.log(zeros / ones)"),
            ("hidden @ self.weights.T + self.visible_bias", "hidden @ self.weights.T"),
            ("np.concatenate([reference.hidden_bias, reference.visible_bias])", "reference.visible_bias"),
        ],
    ),
    (
        "rbm/bernoulli",
        "tests/rbm/test_bernoulli.py::TestBernoulli tests/rbm/test_bernoulli.py::TestRandomBits::test_uniform",
        [
            ("(bits >> 1).astype(jnp.int32)", "(bits >> 2).astype(jnp.int32)"),
            ("counter + stride * jax.lax", "counter + jax.lax"),
        ],
    ),
    (
        "rbm/products",
        "tests/rbm/test_products.py",
        [
            ("return third + second + first", "return second + first"),
            ("*(product[:, q + i] for i", "*(product[:, q - i] for i"),
        ],
    ),
    (
        "rbm/log_likelihood",
        "tests/rbm/test_log_likelihood.py",
        [
            ("return mean + found.log_evidence - log_z", "return mean - found.log_evidence + log_z"),
            ("by_row.std(ddof=1) / np.sqrt(n)", "by_row.std(ddof=1)"),
        ],
    ),
    (
        "model/cast_data",
        "tests/model/test_cast_data.py",
        [
            ('kind in "iub" and not np.array_equal(cast, given)', 'kind in "iub" and False'),
            ("if np.ma.is_masked(values):", "if False:"),
        ],
    ),
    (
        "between/constraints",
        "tests/sampling/test_constraint_bayes_factor.py::test_an_order_is_that_of_one_axis",
        [
            ("if self.order is not None and rv.ndim == 1:", "if self.order is not None:"),
            ("if jnp.ndim(value) != 1:", "if False:"),
        ],
    ),
    (
        "rbm/sample_ais",
        "tests/rbm/test_mean_field.py",
        [
            ("if bound > highest + _ROUNDING:", "if bound > highest:"),
        ],
    ),
    (
        "rbm/training",
        "tests/rbm/test_training.py::TestMonitors",
        [
            ("model.n_visible * log_expit(", "log_expit("),
            ("odds = model.log_density(visible) - model.log_density(flipped)", "odds = model.log_density(flipped) - model.log_density(visible)"),
        ],
    ),
    (
        "rbm/target",
        "tests/rbm/test_target.py",
        [
            ("reference_log_partition_function(self.reference)", "reference_log_partition_function(self.model)"),
        ],
    ),
    (
        "results/container",
        "tests/sampling/test_mass_of_a_cut_prior.py",
        [
            ('np.hypot(scalars["mcse"], error)', 'scalars["mcse"]'),
            ('scalars["log_evidence"], error)', 'scalars["log_evidence"], 0.0)'),
        ],
    ),
    (
        "evidence/bridge_sampling",
        "tests/sampling/test_mass_of_a_cut_prior.py",
        [
            ("np.hypot(estimate.mcse(ess), error_of_prior)", "estimate.mcse(ess)"),
            ("estimate.log_evidence, error_of_prior),", "estimate.log_evidence, 0.0),"),
        ],
    ),
    (
        "sampling/sample_bayes_factor",
        "tests/sampling/test_mass_of_a_cut_prior.py",
        [
            ("np.hypot(ratio.mcse, _error_of_priors(a, b))", "ratio.mcse"),
            ("if a.log_prior_mass == b.log_prior_mass:", "if False:"),
        ],
    ),
    (
        "model/prior_draws",
        "tests/sampling/test_mass_of_a_cut_prior.py",
        [("or accepted > _MASS_ERROR**-2", "or True")],
    ),
    (
        "results/container",
        "tests/results/test_container.py",
        [
            ("wider = estimate.mcse / narrow if narrow > 0 else 1.0", "wider = 1.0"),
            ("self.log_reference - log_ratio if self.reverse", "self.log_reference + log_ratio if self.reverse"),
            ("np.maximum(stats.velocity_squared - stats.velocity**2, 0.0)", "stats.velocity_squared"),
        ],
    ),
    (
        "results/container",
        "tests/results/test_container.py::TestToContainer",
        [
            ("run.log_reference - (stats.log_w[-1] - np.log(n))", "run.log_reference"),
            ('"nan_share": stats.nan / n', '"nan_share": stats.nan'),
            ("for row in run.log_weight]", "for row in run.log_weight.T]"),
        ],
    ),
    (
        "results/compare_models",
        "tests/results/test_compare_models.py",
        [
            ("d = a.log_evidence - b.log_evidence", "d = b.log_evidence - a.log_evidence"),
            ("np.hypot(a.log_evidence - a.interval[0], b.interval[1] - b.log_evidence)", "np.hypot(a.log_evidence - a.interval[0], b.log_evidence - b.interval[0])"),
            ("log_z + error * noise", "log_z + noise"),
            ("max(map(abs, factor.interval)) < _MATTERS", "abs(factor.log_bayes_factor) < _MATTERS"),
            ("wanted = max(d, _MATTERS - d)", "wanted = _MATTERS"),
        ],
    ),
    (
        "results/bayes_factor",
        "tests/results/test_bayes_factor.py",
        [
            ("(-interval[1], -interval[0]), models[::-1]", "(-interval[1], -interval[0]), models"),
            ("self.log_bayes_factor / np.log(10)", "self.log_bayes_factor"),
            ('self.verdict.status != "do not trust"', "True"),
            ("low = 0.0", "low = low"),
            ("max(digits - 2, 1)", "1"),
        ],
    ),
    (
        "results/model_comparison",
        "tests/results/test_compare_models.py::TestForms",
        [('if every else "-"', 'if True else "-"')],
    ),
    (
        "model/notes",
        "tests/sampling/test_target.py::test_notes_speak_of_functions",
        [("if p.name != likelihood", "if p.name")],
    ),
    (
        "results/report_sections",
        "tests/results/test_report.py",
        [
            ('log_bayes_factor=-row["log_bayes_factor"]', 'log_bayes_factor=row["log_bayes_factor"]'),
            ('"do not trust" if none or pd.isna(row["rank"]) else "trust"', '"trust"'),
            ("log_odds[str(name)] - total", "0.0 - total"),
            ('if trusted else "not known"', 'if True else "not known"'),
            ("by_transition.pop(_STAY, [])", "[]"),
        ],
    ),
    (
        "evidence/estimate",
        "tests/evidence/test_estimate.py",
        [
            ('self.verdict.status != "do not trust"', "True"),
            ("bool(self.witnesses) or not self.verdict.reasons", "True"),
        ],
    ),
    (
        "posthoc/average",
        "tests/posthoc/test_inclusion.py",
        [
            ("total = float(weight @ variances) + between", "total = float(weight @ variances)"),
        ],
    ),
    (
        "posthoc/average",
        "tests/posthoc/test_inclusion.py::TestAverage tests/posthoc/test_inclusion.py::test_a_row_of_averages_by_hand",
        [
            ("weight**2 @ errors + of_weights**2", "weight @ errors + of_weights**2"),
            ("weight = softmax(log_z + log_prior)", "weight = softmax(log_z)"),
        ],
    ),
    (
        "posthoc/inclusion",
        "tests/posthoc/test_inclusion.py",
        [
            ("return np.asarray(own - logsumexp(log_mass[..., outside], axis=-1))", "return np.asarray(own)"),
        ],
    ),
    (
        "posthoc/stretch_moves",
        "tests/posthoc/test_stretch_moves.py",
        [
            ("(position.shape[1] - 1) * np.log(factor)", "position.shape[1] * np.log(factor)"),
            ("+ proposed - value[own]", "+ value[own] - proposed"),
        ],
    ),
    (
        "posthoc/moved_to_prior",
        "tests/posthoc/test_moved_to_prior.py",
        [
            ("score > MAX_DISAGREEMENT", "score > np.inf"),
            ("target.log_density(x) - old + change.log_new(values)", "target.log_density(x) + change.log_new(values)"),
            ('return f"variable', 'return "" and f"variable'),
            ("> _MOST_OPERATIONS", "> np.inf"),
        ],
    ),
    (
        "evidence/bridged_ratio",
        "tests/evidence/test_bridged_ratio.py",
        [
            ("bridge.mcse(_independent(reverse), draws_ess(forward))", "bridge.mcse(reverse.size, draws_ess(forward))"),
            ("for terms in (forward, reverse)),\n", "for terms in (forward,)),\n"),
        ],
    ),
    (
        "base/arviz_compat",
        "tests/evidence/test_diagnostics.py",
        [
            ("gap * above / count[inverse]", "0 * above"),
            ("min(tail, _AT_THE_END)", "tail"),
        ],
    ),
    (
        "posthoc/prior_sensitivity",
        "tests/posthoc/test_moved_to_prior.py",
        [
            ("if unseen and found.pareto_k > -np.inf:", "if False:"),
            ("if doubt:", "if False:"),
        ],
    ),
    (
        "posthoc/prior_sensitivity",
        "tests/posthoc/test_prior_sensitivity.py",
        [
            ('value = own.log_bayes_factor + table["log_ratio"]', 'value = own.log_bayes_factor - table["log_ratio"]'),
        ],
    ),
    (
        "posthoc/prior_sensitivity",
        "tests/posthoc/test_prior_sensitivity.py::test_bayes_factors_by_hand tests/posthoc/test_prior_sensitivity.py::TestAgainstAnotherModel tests/posthoc/test_prior_sensitivity.py::TestNormalMean",
        [
            ('np.hypot(high - own.log_bayes_factor, table["upper"]', 'np.hypot(own.log_bayes_factor - low, table["upper"]'),
        ],
    ),
    (
        "posthoc/density_at_point",
        "tests/posthoc/test_savage_dickey.py",
        [
            ("value = prior.log_mean - posterior.log_mean", "value = posterior.log_mean - prior.log_mean"),
        ],
    ),
    (
        "posthoc/density_at_point",
        "tests/posthoc/test_savage_dickey.py::test_errors_of_both_densities_count tests/posthoc/test_savage_dickey.py::TestRandomParents",
        [
            ("np.hypot(prior.mcse, posterior.mcse)", "posterior.mcse"),
        ],
    ),
    (
        "results/sensitivity",
        "tests/results/test_sensitivity.py",
        [
            ("np.log(2) * power * covariance / sd", "power * covariance / sd"),
        ],
    ),
    (
        "results/bayes_factor_words",
        "tests/results/test_report.py::test_words",
        [
            ("doubled = 2 * abs(log_bayes_factor)", "doubled = abs(log_bayes_factor)"),
        ],
    ),
    (
        "execution/blocks",
        "tests/execution/test_blocks.py",
        [
            ("-(-start.particles // (start.chains * m))", "start.particles // (start.chains * m)"),
            ("np.maximum(first.betas[1:], first.betas[:-1])", "first.betas[:-1]"),
            ("interrupted=len(results) < len(blocks)", "interrupted=False"),
            ("np.ceil(2 * barrier)", "np.ceil(barrier)"),
            ("len(first.position) // first.chains if first.resample else 1", "len(first.position) if first.resample else 1"),
        ],
    ),
    (
        "execution/workers",
        "tests/execution/test_workers.py",
        [
            ("return [results[i] for i in range(first)] or", "return [] or"),
            ("if attempts[i] == _ATTEMPTS:", "if attempts[i] == 1:"),
        ],
    ),
    (
        "base/knots",
        "tests/base/test_knots.py",
        [
            ("return knots[segment + 1] - knots[segment]", "return knots[segment] - knots[segment + 1]"),
            ('method="compare_all") - 1', 'method="compare_all")'),
        ],
    ),
    (
        "base/batches",
        "tests/base/test_batches.py",
        [
            ("np.concatenate(parts)[:n]", "np.concatenate(parts)"),
        ],
    ),
    (
        "base/seeds",
        "tests/base/test_seeds.py",
        [
            ("seed_sequence(seed).spawn(index + 1)[index]", "seed_sequence(seed).spawn(index + 1)[0]"),
        ],
    ),
    (
        "results/model_comparison",
        "tests/base/test_html.py",
        [("if not 0 < rest < 0.01", "if True")],
    ),
    (
        "base/html",
        "tests/base/test_html.py",
        [
            ("1 - np.floor(np.log10(error)), 1, 4", "-np.floor(np.log10(error)), 1, 4"),
            ("if colour == _GREEN and not examined", "if False"),
        ],
    ),
    (
        "base/data_hash",
        "tests/base/test_data_hash.py",
        [
            ('b"".join(sorted(parts))', 'b"".join(parts)'),
        ],
    ),
    (
        "base/batches",
        "tests/base/test_parts.py",
        [
            ("position.reshape(n // size, size, -1)", "position.reshape(size, n // size, -1)"),
        ],
    ),
    (
        "base/single_precision",
        "tests/base/test_single_precision.py",
        [
            ("exact = [jnp.asarray(x, dtype) for x, dtype in zip(inputs, wanted, strict=True)]", "exact = inputs"),
        ],
    ),
    (
        "base/contracts",
        "tests/base/test_single_precision.py::test_no_force_where_numbers_are_too_large",
        [
            ("jnp.where(jnp.isfinite(rounded), rounded, 0.0)", "rounded"),
        ],
    ),
]  # fmt: skip
