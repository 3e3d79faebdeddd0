package stock

import (
	"slices"
	"strings"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// recall counts the tuples that were made and reserved in the minutes before this process began.
func (s *Service) recall() {
	now := time.Now()
	began := now
	for _, j := range s.queue.Tuples() {
		if !j.Created.IsZero() && j.Created.Before(began) {
			began = j.Created
		}
	}
	s.flowing.Lock()
	defer s.flowing.Unlock()
	s.flows = newFlows(later(began, now.Add(-4*window)))
	type draw struct {
		at time.Time
		r  *tuplesv1.Reservation
	}
	var draws []draw
	err := s.records.newest("", func(token string, r *tuplesv1.Reservation) bool {
		at := madeAt(token)
		if at.Before(s.flows.began) {
			return false
		}
		draws = append(draws, draw{at, r})
		return true
	})
	if err != nil {
		s.log.Error("cannot read earlier reservations", "error", err)
	}
	for _, d := range slices.Backward(draws) {
		s.flows.of(place{keyOf(d.r.GetClass()), d.r.GetEpoch()}).reserved.add(d.r.GetCount(), d.at)
	}
}

// completed returns the jobs whose tuples are at the parties by now, and counts those that it sees
// for the first time.
func (s *Service) completed() map[string]bool {
	done := map[string]bool{}
	var fresh []Job
	for _, j := range s.queue.Tuples() {
		if !j.completed() {
			continue
		}
		done[j.ID] = true
		if !s.counted[j.ID] {
			s.counted[j.ID] = true
			fresh = append(fresh, j)
		}
	}
	slices.SortStableFunc(fresh, func(a, b Job) int { return a.Ended.Compare(b.Ended) })
	s.flowing.Lock()
	defer s.flowing.Unlock()
	for _, j := range fresh {
		if !j.Ended.Before(s.flows.began) {
			s.flows.of(place{keyOf(ClassOf(j.Request)), j.Request.GetEpoch()}).made.add(j.Made, j.Ended)
		}
	}
	s.flows.forget(time.Now())
	return done
}

// took counts a reservation.
func (s *Service) took(r *tuplesv1.Reservation) {
	s.flowing.Lock()
	s.flows.of(place{keyOf(r.GetClass()), r.GetEpoch()}).reserved.add(r.GetCount(), time.Now())
	s.flowing.Unlock()
	s.Changed()
}

// oneLine joins the lines of an error.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
