package round

import "fmt"

// Shape is what every message of a name is that an honest party sends, as far as that follows from what is public.
type Shape struct {
	Frames int
	// Check refuses a frame that is none of an honest party at this index. It is not for concurrent use.
	Check func(index int, frame []byte) error
}

// Bare is the shape of messages of exactly so many bytes.
func Bare(size int) Shape {
	return Of(size, func([]byte) error { return nil })
}

// Of is the shape of messages that are not streamed, of exactly so many bytes, at most one frame, which decode.
func Of(size int, decode func(b []byte) error) Shape {
	if size > MaxFrame {
		panic("round: a shape of more than a frame")
	}
	return Shape{Frames: 1, Check: func(_ int, frame []byte) error {
		if len(frame) != size {
			return fmt.Errorf("%d bytes, want %d", len(frame), size)
		}
		return decode(frame)
	}}
}
