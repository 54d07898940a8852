"""The derivatives of a density that is translated to JAX.

All of them exist where the whole density has a JAX form. A part that is evaluated by compiled
PyTensor code has gradients, and no others, if its Ops have them.
"""

from typing import NamedTuple

# Orders: none, gradients alone, or all.
NO_GRADIENT, FIRST_ORDER, SMOOTH = 0, 1, 2


class Derivatives(NamedTuple):
    """Which derivatives a density has, and why not more.

    Attributes
    ----------
    order : int
        ``NO_GRADIENT``, ``FIRST_ORDER`` or ``SMOOTH``.
    obstacle : str
        The error in the way of higher ones; "" if there is none.
    """

    order: int = SMOOTH
    obstacle: str = ""

    def require(self, method: str, order: int = FIRST_ORDER) -> None:
        """Raise unless there are derivatives up to an order.

        Parameters
        ----------
        method : str
            Method that has this requirement, the first words of the message.
        order : int

        Raises
        ------
        NotImplementedError
            An Op of the model has no gradient, or higher derivatives are asked for and it has no
            JAX form.
        """
        if self.order >= order:
            return
        if self.order == NO_GRADIENT:
            raise NotImplementedError(
                f"{method} needs gradients, and a part of the model has none ({self.obstacle}). "
                "Give the Op a gradient (`pullback`, or `grad` before PyTensor 3), or use a method "
                "without gradients, such as `transition='random_walk'`."
            )
        raise NotImplementedError(
            f"{method} needs second derivatives, and a part of the model has no JAX form "
            f"({self.obstacle}). Register one for the Op (pytensor.link.jax.dispatch)."
        )
