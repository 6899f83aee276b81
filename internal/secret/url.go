package secret

import (
	"net"
	"net/url"
)

// Confidential reports whether a request to the URL may carry a secret: over https, or over
// http to a loopback address, such as a proxy's in the task.
func Confidential(u *url.URL) bool {
	if u.Scheme == "https" {
		return u.Hostname() != ""
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && (ip.IsLoopback() || u.Hostname() == "localhost")
}
