package tuplefile

import "github.com/lodge-mpc/lodge/engine/kind"

// Convolution is the shape of convolution triples: images X of channels x height x width, kernels W
// of outputs x channels x kernel height x kernel width, and results Y of outputs x OutHeight x
// OutWidth. Kernels move by the strides over the image, which has padding zeros on each side. All
// arrays are row-major with the last dimension innermost.
type Convolution = kind.ConvolutionShape
