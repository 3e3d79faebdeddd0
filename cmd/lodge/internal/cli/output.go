package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Output is standard output. It holds back the record of a command that may fail.
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

// Hold says that what a command writes from here on is one record, to which a failure is added.
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

// Fail writes what was held back, with the failure in it.
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
	if !bytes.Contains(held, []byte("\n")) { // the last of a list of lines
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

// Failure is what --json says of an error: a code for programs, what happened, and what to do about it, or nothing.
type Failure struct {
	Code rpc.Code `json:"code"`
	What string   `json:"what"`
	Next string   `json:"next"`
}

// WriteJSONLine writes JSON on one line.
func WriteJSONLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
