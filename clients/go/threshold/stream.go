package threshold

import (
	"context"
	"iter"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

// Stream has LWE ciphertexts decrypted as they arrive, until the channel is closed, and yields
// their messages in the same order. Ciphertexts that arrive during a request form the next one, of
// at most the given number of messages. prepare, which may be nil, sets options of a request, and
// may sign the origin of its ciphertexts. The sequence ends with the first error. A caller that
// ends its loop earlier must cancel ctx or drain the channel.
func (c *Client) Stream(ctx context.Context, k *Key, in <-chan *lwe.LWE, most int, prepare func(*Request) error) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		if most < 1 {
			yield(0, lodge.Errorf(lodge.Invalid, "write 1 or more", "%d messages at a time", most))
			return
		}
		for open := true; open; {
			var batch []*lwe.LWE
			if batch, open = waiting(ctx, in, most); len(batch) == 0 {
				break
			}
			r := &Request{LWE: batch}
			var got *Result
			var err error
			if prepare != nil {
				err = prepare(r)
			}
			if err == nil && r.Recipient != nil {
				err = lodge.Errorf(lodge.Invalid, "use Decrypt", "answers sealed to another recipient cannot be read")
			}
			if err == nil {
				got, err = c.Decrypt(ctx, k, r)
			}
			if err != nil {
				yield(0, err)
				return
			}
			for _, m := range got.Messages {
				if !yield(m, nil) {
					return
				}
			}
		}
		if err := ctx.Err(); err != nil {
			yield(0, err)
		}
	}
}

// waiting returns the available items of a channel and waits for the first; open reports whether
// more may arrive.
func waiting(ctx context.Context, in <-chan *lwe.LWE, most int) (batch []*lwe.LWE, open bool) {
	select {
	case x, ok := <-in:
		if !ok {
			return nil, false
		}
		batch = append(batch, x)
	case <-ctx.Done():
		return nil, false
	}
	for len(batch) < most {
		select {
		case x, ok := <-in:
			if !ok {
				return batch, false
			}
			batch = append(batch, x)
		default:
			return batch, true
		}
	}
	return batch, true
}
