// What quantize measured, beside what is modelled of the model before and after: each layer's error, whether
// it stayed in floats, its weights, and what it costs beside what it cost.
#pragma once
#include <nlohmann/json.hpp>

#include "report/report.h"

namespace sinter {

// Gives each of measured["layers"], which have {node, op}, its modelled time before and after: `float_us` and
// `us`. Of several in one layer of a plan it belongs to the first product, or to the first; of the others
// `in` names that one. measured["modelled"] has the sums {target, mhz, float_us, us} and `others` {float_us,
// us}, what belongs to none.
void add_costs(const Compiled& floats, const Compiled& written, nlohmann::ordered_json& measured);

// `measured` is what quantize --report writes. The page's model is `written`; beside each layer that quantize
// looked at, `quantised` has {type, kept, snr_alone_db, weight_bytes, weight_bytes_float} and float_us, what
// the ONNX nodes in it cost in `floats`.
nlohmann::ordered_json quantised_report(const Compiled& floats, const Compiled& written,
                                        const nlohmann::ordered_json& measured);

}  // namespace sinter
