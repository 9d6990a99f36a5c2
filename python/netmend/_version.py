VERSION = "0.1.0"  # the program's
