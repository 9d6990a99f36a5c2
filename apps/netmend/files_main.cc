// netmend-files: the commands that only read and write small files. They start at once, without LibTorch.
#include "netmend/flags.h"

int main(int argc, char** argv) { return netmend::app::run_program(argc, argv, {netmend::app::add_files, nullptr}); }
