package file

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Outside is a TCP address that tasks may reach outside of the run.
type Outside struct {
	// Name and Port are what tasks connect to.
	Name string
	Port uint16
	// Target is the address that this machine connects to, host:port.
	Target string
}

var hostname = regexp.MustCompile(`^[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,251}[a-zA-Z0-9])?$`)

// ParseOutside reads NAME:PORT, or NAME:PORT=HOST:PORT for another address than that.
func ParseOutside(text string) (Outside, error) {
	own, target, other := strings.Cut(text, "=")
	if !other {
		target = own
	}
	name, port, err := net.SplitHostPort(own)
	host, targetPort, targetErr := net.SplitHostPort(target)
	number, portErr := strconv.ParseUint(port, 10, 16)
	_, targetPortErr := strconv.ParseUint(targetPort, 10, 16)
	err = errors.Join(err, targetErr, portErr, targetPortErr)
	_, isAddress := netip.ParseAddr(name)
	if err != nil || number == 0 || host == "" || !hostname.MatchString(name) || isAddress == nil {
		return Outside{}, fmt.Errorf("%q: want NAME:PORT or NAME:PORT=HOST:PORT, such as db:5432=127.0.0.1:5432", text)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLinkLocalUnicast() {
		return Outside{}, fmt.Errorf("%q: %s is a link-local address, such as that of this machine's own credentials",
			text, host)
	}
	return Outside{Name: strings.ToLower(name), Port: uint16(number), Target: target}, nil
}

// OutsideAddresses returns those of Outside. The error has all mistakes in them.
func (s *Scenario) OutsideAddresses() ([]Outside, error) {
	var all []Outside
	var errs []error
	taken := map[string]bool{}
	for i, text := range s.Outside {
		o, err := ParseOutside(text)
		key := fmt.Sprint(o.Name, ":", o.Port)
		if err == nil && taken[key] {
			err = fmt.Errorf("%q: %s is given twice", text, key)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("outside[%d]: %w", i, err))
			continue
		}
		taken[key] = true
		all = append(all, o)
	}
	return all, errors.Join(errs...)
}
