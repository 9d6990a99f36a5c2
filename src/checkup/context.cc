#include "checkup/context.h"

namespace netmend::checkup {

findings::Words words_of(const Context& context, findings::Words more) {
  more["case"] = context.words;
  more["model"] = context.model_words;
  more["data"] = context.data_words;
  more["train"] = context.train_words;
  return more;
}

}  // namespace netmend::checkup
