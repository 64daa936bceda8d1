"""What tests have other processes do: a module that these can import."""

import os
import signal
import time

from dynid_ros.progress import advance


def square(number):
    return number * number


def square_once_dead(number, mark):
    """Kills its process the first time that it is called."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return number * number
    return os.kill(os.getpid(), signal.SIGKILL)


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


def for_ever():
    while True:
        time.sleep(0.02)
        advance(0.0)
