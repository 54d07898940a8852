"""A PyMC model as functions of one vector.

From a ``pm.Model`` to ``log_prior(x)`` and ``log_likelihood(x)`` in JAX, with exact prior draws and
the way back to the model's variables. The only folder that knows PyTensor.
"""
