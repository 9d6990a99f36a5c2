"""The Python package: data and outputs out of Python, repairs back into it. Its tests are those of python/tests.

usage: python_test.py NETMEND
"""
import os, sys, unittest

from shell import NETMEND, PYTHON, SOURCE, finish, need

ENVIRONMENT = os.path.join(SOURCE, "build", "python-environment")  # made by ./dev test all
if os.path.exists(os.path.join(ENVIRONMENT, "complete")) and os.path.realpath(sys.prefix) != os.path.realpath(ENVIRONMENT):
    os.execv(os.path.join(ENVIRONMENT, "bin", "python"), ["python", *sys.argv])
need("numpy")
os.environ["NETMEND_PROGRAM"] = NETMEND

if __name__ == "__main__":
    finish(unittest.TestLoader().discover(os.path.join(PYTHON, "tests"), top_level_dir=PYTHON))
