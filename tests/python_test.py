"""The Python package: data and outputs out of Python, repairs back into it. Its tests are those of python/tests.

usage: python_test.py NETMEND
"""
import os, unittest

from shell import NETMEND, PYTHON, finish, need

need("numpy")
os.environ["NETMEND_PROGRAM"] = NETMEND

if __name__ == "__main__":
    finish(unittest.TestLoader().discover(os.path.join(PYTHON, "tests"), top_level_dir=PYTHON))
