// mpirun -n N netmend …, seen from the command line.
#pragma once

#include <string>
#include <vector>

#include "netmend/commands.h"

namespace netmend::app {

/// Of processes that were started together one tells what is wrong with the command line.
bool speaks();
/// Joins the others. Rank 0 talks and writes; what the others would write goes into a folder that is removed:
/// `products` and the run folder get other names there. Throws InputError for commands whose work cannot be shared, and
/// where command lines differ.
void join_ranks(Common& common, const std::string& name, const std::vector<std::string*>& products);
/// What sharing cost, for those who want to know.
void tell_traffic(const Common& common);
/// After everything: all ranks end together.
void leave_ranks(int status);

}  // namespace netmend::app
