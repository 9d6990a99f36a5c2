#include "observers/coverage/table.h"

#include "observers/coverage/idc.h"
#include "observers/coverage/kmnc.h"
#include "observers/coverage/mcdc.h"
#include "observers/coverage/mcdc_values.h"
#include "observers/coverage/nbc_snac.h"
#include "observers/coverage/nc.h"
#include "observers/coverage/nlc.h"
#include "observers/coverage/tknc.h"
#include "observers/coverage/tknp.h"
#include "observers/surprise/dsa.h"
#include "observers/surprise/lsa.h"
#include "observers/surprise/mdsa.h"

namespace netmend::observers {

std::span<const CriterionRow> criterion_rows() {
  static const CriterionRow rows[] = {
      idc_row(), nc_row(),  kmnc_row(), nbc_row(), snac_row(), tknc_row(), tknp_row(), mcdc_row(),
      vsc_row(), svc_row(), vvc_row(),  nlc_row(), lsc_row(),  dsc_row(),  mdsc_row(),
  };
  return rows;
}

}  // namespace netmend::observers
