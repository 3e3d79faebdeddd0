//go:build !linux && !darwin

package disk

import "errors"

// SpaceOf fails: this operating system has no call for it here.
func SpaceOf(string) (Space, error) {
	return Space{}, errors.New("disk: the space on disks is not known on this system")
}
