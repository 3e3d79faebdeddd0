package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/vanguard"
	"connectrpc.com/vanguard/vanguardgrpc"

	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Methods are the methods that pages may call: those that change nothing and return no share, key
// or plaintext.
var Methods = []string{
	coordinatorv1.CoordinatorService_GetJob_FullMethodName,
	coordinatorv1.CoordinatorService_WatchJob_FullMethodName,
	coordinatorv1.CoordinatorService_ListJobs_FullMethodName,
	coordinatorv1.CoordinatorService_ListEpochs_FullMethodName,
	coordinatorv1.CoordinatorService_EstimateJob_FullMethodName,
	stockv1.StockService_GetReservation_FullMethodName,
	stockv1.StockService_ListReservations_FullMethodName,
	stockv1.StockService_GetStock_FullMethodName,
	stockv1.StockService_WatchStock_FullMethodName,
	stockv1.StockService_ListPolicies_FullMethodName,
	statusv1.StatusService_GetStatus_FullMethodName,
	statusv1.StatusService_WatchStatus_FullMethodName,
	statusv1.StatusService_ListAuditEntries_FullMethodName,
	keygenv1.KeygenService_ListEpochs_FullMethodName,
	keygenv1.KeygenService_GetStatus_FullMethodName,
	keygenv1.KeygenService_Watch_FullMethodName,
	triplesv1.TriplesService_GetStatus_FullMethodName,
	triplesv1.TriplesService_Watch_FullMethodName,
	popkv1.PopkService_GetStatus_FullMethodName,
	popkv1.PopkService_Watch_FullMethodName,
	thresholdv1.ThresholdService_GetStatus_FullMethodName,
	thresholdv1.ThresholdService_Watch_FullMethodName,
	thresholdv1.ThresholdService_ListKeys_FullMethodName,
	thresholdv1.ThresholdService_ListApprovals_FullMethodName,
	tuplesv1.TuplesService_GetReservation_FullMethodName,
	tuplesv1.TuplesService_ListReservations_FullMethodName,
	tuplesv1.TuplesService_ListBatches_FullMethodName,
	tuplesv1.TuplesService_ListMacKeys_FullMethodName,
	accusationsv1.AccusationsService_ListAccusations_FullMethodName,
	accusationsv1.AccusationsService_ListFailures_FullMethodName,
	multikeyv1.KeysService_ListKeys_FullMethodName,
	multikeyv1.RegistryService_ListPublished_FullMethodName,
	multikeyv1.EvaluationService_GetJob_FullMethodName,
	multikeyv1.EvaluationService_WatchJob_FullMethodName,
	multikeyv1.EvaluationService_ListJobs_FullMethodName,
}

// rpcPath is the path of calls, before the service and the method.
const rpcPath = "/api/rpc/"

// Limits on a call.
const (
	maxRequest  = 64 << 10         // bytes
	maxResponse = 8 << 20          // bytes of one message
	requestTime = 10 * time.Second // in which the request must arrive
	writeTime   = 30 * time.Second // in which a browser must receive a message
)

// contents are the content types of calls: messages of the Connect protocol in JSON, alone or in a
// stream.
var contents = []string{"application/json", "application/connect+json"}

// gateway returns the handler that translates calls of the Connect protocol to gRPC.
func (c *Console) gateway() (http.Handler, error) {
	return vanguardgrpc.NewTranscoder(c.opts.Gateway, vanguard.WithDefaultServiceOptions(
		vanguard.WithMaxMessageBufferBytes(maxResponse), vanguard.WithNoTargetCompression(),
	))
}

// call passes a call of a page to the process's own gRPC services, as the session's identity.
func (c *Console) call(api http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		method := "/" + r.PathValue("service") + "/" + r.PathValue("method")
		//lodge:check console/methods [run=TestWriteMethods] [redundant=the gateway has no other
		//  methods] a page changes the state of the process
		if !slices.Contains(Methods, method) {
			fail(w, rpc.Errorf(rpc.Forbidden, "use the command line", "the console does not call %.200q, which may change something", method))
			return
		}
		content, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		//lodge:check console/content [drop=!slices.Contains(contents, content)] [run=TestContent] a
		//  form of another site is taken for a call
		//lodge:check console/compressed [drop=encoded(r.Header)] [run=TestContent] a small request
		//  becomes a large one
		if err != nil || !slices.Contains(contents, content) || encoded(r.Header) {
			fail(w, rpc.Errorf(rpc.Invalid, "send application/json, without compression", "the content type is %.100q", r.Header.Get("Content-Type")))
			return
		}
		body, refused := read(w, r)
		if refused == nil && content == contents[0] && !json.Valid(body) {
			refused = rpc.Errorf(rpc.Invalid, "", "the request is not JSON")
		}
		if refused != nil {
			fail(w, refused)
			return
		}
		who := r.Context().Value(callerKey{}).(caller)
		inner := r.Clone(rpc.WithProof(r.Context(), who.session.holds()))
		inner.URL.Path, inner.URL.RawPath, inner.URL.RawQuery, inner.RequestURI = method, "", "", method
		inner.Header = http.Header{"Content-Type": {content}, "Connect-Protocol-Version": {"1"}}
		if v := r.Header.Get("Connect-Timeout-Ms"); v != "" {
			inner.Header.Set("Connect-Timeout-Ms", v)
		}
		inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		api.ServeHTTP(&writer{ResponseWriter: w, control: http.NewResponseController(w)}, inner)
	}
}

// encoded reports whether a request is compressed.
func encoded(h http.Header) bool {
	for _, name := range []string{"Content-Encoding", "Connect-Content-Encoding"} {
		if v := h.Get(name); v != "" && v != "identity" {
			return true
		}
	}
	return false
}

// read reads the body of a request, which must arrive soon.
func read(w http.ResponseWriter, r *http.Request) ([]byte, *rpc.Error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(requestTime)); err != nil {
		return nil, rpc.Errorf(rpc.Internal, "", "no deadline: %v", err)
	}
	defer control.SetReadDeadline(time.Time{}) // it would end the response as well
	//lodge:check console/request [swap=maxRequest=>1 << 30] [run=TestContent] a request takes any
	//  amount of memory
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, rpc.Errorf(rpc.TooLarge, "", "a request has at most %d bytes", maxRequest)
	}
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "send the request at once", "the request did not arrive")
	}
	return body, nil
}

// writer ends a response that the browser does not receive in time.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
}

// within runs f with a deadline.
func (w *writer) within(f func()) {
	w.control.SetWriteDeadline(time.Now().Add(writeTime))
	defer w.control.SetWriteDeadline(time.Time{})
	f()
}

// Write implements http.ResponseWriter.
func (w *writer) Write(b []byte) (n int, err error) {
	w.within(func() { n, err = w.ResponseWriter.Write(b) })
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() { w.within(func() { w.control.Flush() }) }

// Unwrap returns the wrapped writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
