package evidence

import (
	"io"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// frames calls take with each shown frame of messages[i], in a buffer that is reused. Callers must
// read the messages in order; no frame of a skipped message may be shown.
func (r *referee) frames(i int, take func(index int, frame []byte) error) error {
	for ; r.read < i; r.read++ {
		//lodge:check evidence/frames/passed [run=TestRefereeOfFrames] a frame of the wrong message
		//  is read
		if len(r.list[r.read].shown) > 0 {
			return unreadable("the accusation does not need the frames of %s", r.list[r.read].Name)
		}
	}
	r.read++
	for _, index := range r.list[i].shown {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		var err error
		if r.room, err = block(r.in, r.room, round.MaxFrame); err != nil {
			return err
		}
		//lodge:check evidence/frames/digest [run=TestLimitsOfWhoIsAccused|TestRefereeOfNames] a
		//  shown frame need not be the signed one
		if round.FrameDigest(r.room) != r.list[i].frames[index] {
			return unproven("a frame does not match the digest of its %s", r.list[i].Name)
		}
		if err := take(index, r.room); err != nil {
			return err
		}
	}
	return nil
}

// whole returns the complete messages[i] in new memory. All of it must be shown, and it must have
// at most limit bytes.
func (r *referee) whole(i, limit int) ([]byte, error) {
	//lodge:check evidence/frames/all [drop=len(r.list[i].shown) != len(r.list[i].frames)]
	//  [run=TestRefereeOfFrames] a whole message can lack frames
	//lodge:check evidence/frames/any [drop=len(r.list[i].shown) == 0] [run=TestRefereeOfFrames] a
	//  whole message can be empty
	if len(r.list[i].shown) != len(r.list[i].frames) || len(r.list[i].shown) == 0 {
		return nil, unproven("not all frames of %s are shown", r.list[i].Name)
	}
	var b []byte
	err := r.frames(i, func(_ int, frame []byte) error {
		//lodge:check evidence/frames/limit [run=TestRefereeOfFrames] a whole message takes any
		//  amount of memory
		if len(b)+len(frame) > limit {
			return unproven("%s is longer than allowed", r.list[i].Name)
		}
		b = append(b, frame...)
		return nil
	})
	return b, err
}

// end checks that the file contains no further data.
func (r *referee) end() error {
	for ; r.read < len(r.list); r.read++ {
		//lodge:check evidence/frames/left [run=TestRefereeOfFrames] one cheat can be filed many
		//  times with unused frames
		if len(r.list[r.read].shown) > 0 {
			return unreadable("the accusation does not need the frames of %s", r.list[r.read].Name)
		}
	}
	n, err := io.ReadFull(r.in, make([]byte, 1))
	switch {
	//lodge:check evidence/file/end [swap=0=>1] [run=TestRefereeOfFrames] a file can have trailing
	//  data
	case n > 0:
		return unreadable("data after the end of the accusation")
	case err == io.EOF:
		return nil
	}
	return truncated(err)
}
