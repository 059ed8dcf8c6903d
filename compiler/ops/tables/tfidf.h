// TfIdfVectorizer's attributes as the tables of runtime/sinter/tfidf.h.
#pragma once
#include <vector>

#include "ops/op.h"
#include "sinter/tfidf.h"

namespace sinter {

struct TfIdfTables {
  struct Length {
    int64_t length = 0;
    std::vector<int64_t> items, columns;
  };
  std::vector<Length> lengths;  // only those between min_gram_length and max_gram_length
  std::vector<float> weights;   // by column; empty: all 1
  int64_t columns = 0, skips = 0;
  TfIdfMode mode = TfIdfMode::kTf;
};
TfIdfTables tfidf_of(const Node&);  // refuses without the node's name

}  // namespace sinter
