// What quantize measured, on the page of the model that it wrote: each layer's error, whether it stayed in
// floats, its weights, and what it costs beside what it cost.
#pragma once
#include <nlohmann/json.hpp>

#include "report/report.h"

namespace sinter {

// `measured` is what quantize --report writes. The page's model is `written`; beside each layer that quantize
// looked at, `quantised` has {type, snr_alone_db, weight_bytes, weight_bytes_float} and float_us, the
// modelled time of the layer of `floats` with the same ONNX node.
nlohmann::ordered_json quantised_report(const Compiled& floats, const Compiled& written,
                                        const nlohmann::ordered_json& measured);

}  // namespace sinter
