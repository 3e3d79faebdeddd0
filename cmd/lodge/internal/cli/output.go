package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Output is the standard output of a command. It can hold back a record, so that a failure can be
// added to it.
type Output struct {
	W    io.Writer
	Held bool
	text bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	if o.Held {
		return o.text.Write(b)
	}
	return o.W.Write(b)
}

// Hold starts a JSON record: it holds back all output of the command from here on. If the command
// fails, Execute adds the failure to the record.
func Hold(cmd *cobra.Command) {
	if o, ok := cmd.OutOrStdout().(*Output); ok {
		o.Held = true
	}
}

func (o *Output) release() error {
	o.Held = false
	_, err := o.text.WriteTo(o.W)
	return err
}

// Fail writes the held record with the failure in it.
func (o *Output) Fail(err error) error {
	e := rpc.FromError(err)
	record := struct {
		Error Failure `json:"error"`
	}{Failure{e.Code, OneLine(e.What), OneLine(e.Next)}}
	held, isRecord := bytes.CutSuffix(bytes.TrimSpace(o.text.Bytes()), []byte("}"))
	if !isRecord {
		return errors.Join(o.release(), WriteJSONLine(o.W, record))
	}
	member, err := json.Marshal(record)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.Write(held)
	if !bytes.HasSuffix(bytes.TrimSpace(held), []byte("{")) {
		text.WriteByte(',')
	}
	text.Write(member[1:])
	o.text.Reset()
	if !bytes.Contains(held, []byte("\n")) { // one record of several, a line each
		text.WriteByte('\n')
		_, err := text.WriteTo(o.W)
		return err
	}
	if err := json.Indent(&o.text, text.Bytes(), "", "  "); err != nil {
		return err
	}
	o.text.WriteByte('\n')
	return o.release()
}

// Failure is the JSON form of an error: a code for programs, the text, and the next step, which may
// be empty.
type Failure struct {
	Code rpc.Code `json:"code"`
	What string   `json:"what"`
	Next string   `json:"next"`
}

// WriteJSONLine writes v as JSON on one line.
func WriteJSONLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
