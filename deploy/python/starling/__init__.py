"""Private federated fine-tuning from Python.

    import starling

    result = starling.simulate(frame, text="question", label="category", epsilon=2)
    print(result.accuracy, result.guarantee)
    result.export("adapter")  # for PEFT

The wheel carries the command ``starling``, which does the work. Data stay on this machine.
"""

from ._command import InputError, StarlingError, executable
from ._simulate import Prediction, Result, simulate

__all__ = ["InputError", "Prediction", "Result", "StarlingError", "executable", "simulate"]
