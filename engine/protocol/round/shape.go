package round

import "fmt"

// Shape describes the messages of one name that an honest party sends, as far as public data
// determines them.
type Shape struct {
	Frames int
	// Check returns an error for a frame that no honest party sends at this index. It is not safe
	// for concurrent use.
	Check func(index int, frame []byte) error
}

// Bare returns the shape of messages of exactly size bytes.
func Bare(size int) Shape {
	return Of(size, func([]byte) error { return nil })
}

// Of returns the shape of messages of one frame and exactly size bytes that decode accepts. It
// panics if size exceeds [MaxFrame].
func Of(size int, decode func(b []byte) error) Shape {
	if size > MaxFrame {
		panic("round: a shape of more than a frame")
	}
	return Shape{Frames: 1, Check: func(_ int, frame []byte) error {
		//lodge:check round/shape/length [swap=len(frame) != size=>len(frame) > size]
		//  [tests=./services/session/evidence] [run=TestRefereeOfShapes] an honest message is judged
		//  malformed, or a malformed one honest
		if len(frame) != size {
			return fmt.Errorf("%d bytes, want %d", len(frame), size)
		}
		return decode(frame)
	}}
}
