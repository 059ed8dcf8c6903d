// Pictures as inputs: what the words of --image make of a file, as a tensor or as a camera's frame.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "driver/options.h"

namespace sinter {

// What is said of an input: the last words that name it or none.
FrameWords words_of_input(const std::vector<FrameWords>& given, const std::string& input);

bool is_image_file(const std::string& path);  // by its ending: .png .jpg .jpeg

// Which axes of an input are channels, rows, columns; -1: none.
struct PictureAxes {
  int channel = -1, row = -1, column = -1;
};
// [N,C,H,W], [N,H,W,C], the same without N, or [H,W] (C is 1 or 3; found out from the extents). Nothing where
// it is none of these.
std::optional<PictureAxes> picture_axes(const DeclaredInput&);
// Whether a picture can be made of its element type.
bool is_pixel_type(DType);
// The shape of an input that takes one picture: N is 1, and rows and columns that the input leaves free
// within bounds are those given. UsageError where the input takes no picture.
std::vector<int64_t> picture_shape(const DeclaredInput&, int64_t height, int64_t width);

// The picture as the input wants it: frame_to_tensor (ops/vision/frame.h) of the frame that the words tell,
// into which the picture is put first, or of the picture itself.
Tensor image_tensor(const std::string& path, const DeclaredInput& input, const FrameWords& words);

// The picture as a frame in memory, [rows, stride]; one of another size is stretched.
Tensor image_frame(const std::string& path, const FrameWords& words);

}  // namespace sinter
