"""An executor that runs what it is sent at once."""

import pickle

from concurrent.futures import Executor, Future


class Serial(Executor):
    """Runs what it is sent at once, through a pickle, as another process would."""

    def __init__(self, fail=lambda number: None):
        self._fail, self.calls = fail, 0

    def submit(self, function, /, *args, **kwargs) -> Future:
        self.calls += 1
        future: Future = Future()
        try:
            self._fail(self.calls)
            function, args, kwargs = pickle.loads(pickle.dumps((function, args, kwargs)))
            future.set_result(pickle.loads(pickle.dumps(function(*args, **kwargs))))
        except BaseException as error:
            future.set_exception(error)
        return future
