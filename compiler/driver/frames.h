// --pre: inputs that are camera's frames. The model's picture is made of the frame by a node in front of it
// (frame_to_tensor), so that all commands, and verify's meaning, see the frame.
#pragma once
#include <string>
#include <vector>

#include "driver/options.h"

namespace sinter {

// What --pre says, each of the words with the input that it is of. UsageError where they name no input, or
// one twice, or one that takes no picture.
std::vector<FrameWords> frames_of(const ModelOptions& o, const ImportOptions& import);

// The inputs that a caller gives: without those of states, and frames as rows of bytes.
std::vector<DeclaredInput> caller_inputs(const ModelOptions& o, const ImportOptions& import);
std::vector<DeclaredInput> with_frames(std::vector<DeclaredInput> inputs,
                                       const std::vector<FrameWords>& frames);

// The options with the extents of the pictures that the model leaves free: one picture, of the frame's size.
ImportOptions with_pictures(const ModelOptions& o, const ImportOptions& import,
                            const std::vector<FrameWords>& frames);

// Puts the node that makes the picture behind each frame, which takes the input's place and name.
void add_frames(Graph& g, const std::vector<FrameWords>& frames);

// A frame as arrays hold it too, [height, width, channels] or, where a pixel is a byte, [rows, width], as
// rows of bytes; any other tensor as it is.
Tensor as_frame(const Tensor& t, const FrameWords& words);

// Whether the input is one.
bool is_frame(const Value& v);

// "bgr (blue, green, red), 640x480, 1920 bytes from row to row, 921600 in all".
std::string frame_text(const FrameWords& words);

}  // namespace sinter
