package host

import "golang.org/x/sys/unix"

// Descriptors returns the descriptors in the control messages of a Unix socket. After an error some
// may have been received: the caller closes them.
func Descriptors(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		var received []int
		if received, err = unix.ParseUnixRights(&messages[i]); err != nil {
			break
		}
		fds = append(fds, received...)
	}
	return fds, err
}
