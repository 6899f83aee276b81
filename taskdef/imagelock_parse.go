package taskdef

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lockAgain is the cure of a lock that cannot be used.
const lockAgain = "make it again with `consul-ecs images lock`"

// ParseImageLock reads a lock. The error names everything that is wrong in it, a line each: a
// lock that was damaged, or that another version wrote, must not decide anything.
func ParseImageLock(doc []byte) (*ImageLock, error) {
	if err := checkJSON(doc, formatTemplate); err != nil {
		return nil, fmt.Errorf("damaged image lock, %s: %w", lockAgain, err)
	}
	root, repeated := readNode(doc)
	if version := root.Get("version"); version != nil && string(version.JSON()) != strconv.Itoa(ImageLockVersion) {
		return nil, fmt.Errorf("image lock of version %s: this program reads version %d; %s", version.JSON(),
			ImageLockVersion, lockAgain)
	}
	r := lockReader{}
	for _, w := range repeated {
		r.fault(w.Path, "key given twice")
	}
	lock := r.lock(root)
	if len(r.faults) > 0 {
		return nil, fmt.Errorf("damaged image lock, %s:\n%w", lockAgain, errors.Join(r.faults...))
	}
	return lock, nil
}

// lockReader turns the tree of a lock into its types, and collects what is wrong.
type lockReader struct{ faults []error }

func (r *lockReader) fault(path, message string) {
	r.faults = append(r.faults, errors.New("  "+OneLine(path+": "+message)))
}

func (r *lockReader) lock(n *Node) *ImageLock {
	lock := &ImageLock{Version: ImageLockVersion, Images: map[string]LockedImage{}}
	r.object("$", n, "version", "images")
	if n.IsObject() && n.Get("version") == nil {
		r.fault("$.version", "missing")
	}
	images := n.Get("images")
	if n.IsObject() && r.required("$.images", images) {
		r.object("$.images", images)
	}
	for _, reference := range images.Keys() {
		path := "$.images[" + strconv.Quote(reference) + "]"
		lock.Images[reference] = r.image(path, images.Get(reference))
	}
	return lock
}

func (r *lockReader) image(path string, n *Node) LockedImage {
	r.object(path, n, "digest", "platforms")
	image := LockedImage{Digest: r.digest(path, n), Platforms: map[string]ImageConfig{}}
	platforms := n.Get("platforms")
	if !r.required(path+".platforms", platforms) {
		return image
	}
	r.object(path+".platforms", platforms)
	if platforms.IsObject() && len(platforms.Keys()) == 0 {
		r.fault(path+".platforms", "empty: an image has at least one")
	}
	for _, name := range platforms.Keys() {
		place := path + ".platforms[" + strconv.Quote(name) + "]"
		if !strings.Contains(name, "/") {
			r.fault(place, "want a platform such as linux/amd64")
		}
		image.Platforms[name] = r.config(place, platforms.Get(name))
	}
	return image
}

func (r *lockReader) config(path string, n *Node) ImageConfig {
	r.object(path, n, "digest", "entrypoint", "cmd", "user", "stopSignal", "workingDir", "volumes", "healthcheck")
	config := ImageConfig{
		Digest:     r.digest(path, n),
		Entrypoint: r.texts(path, n, "entrypoint"),
		Cmd:        r.texts(path, n, "cmd"),
		User:       r.text(path, n, "user"),
		StopSignal: r.text(path, n, "stopSignal"),
		WorkingDir: r.text(path, n, "workingDir"),
		Volumes:    r.texts(path, n, "volumes"),
	}
	if health := n.Get("healthcheck"); health != nil {
		config.Healthcheck = r.health(path+".healthcheck", health)
	}
	return config
}

func (r *lockReader) health(path string, n *Node) *ImageHealth {
	r.object(path, n, "test", "interval", "timeout", "startPeriod", "retries")
	health := &ImageHealth{
		Test:        r.texts(path, n, "test"),
		Interval:    r.duration(path, n, "interval"),
		Timeout:     r.duration(path, n, "timeout"),
		StartPeriod: r.duration(path, n, "startPeriod"),
	}
	if retries := n.Get("retries"); retries != nil {
		var err error
		if health.Retries, err = strconv.Atoi(string(retries.JSON())); err != nil {
			r.fault(path+".retries", "want a number")
		}
	}
	return health
}

// object checks that a value is an object, with no other keys than these if there are any.
func (r *lockReader) object(path string, n *Node, known ...string) {
	if !n.IsObject() {
		r.fault(path, "want an object")
		return
	}
	for _, key := range n.Keys() {
		if len(known) > 0 && !slices.Contains(known, key) {
			r.fault(path, "unknown key "+strconv.Quote(key))
		}
	}
}

// required reports whether a value is there.
func (r *lockReader) required(path string, n *Node) bool {
	if n == nil {
		r.fault(path, "missing")
	}
	return n != nil
}

// digest reads the member that each image and each platform must have.
func (r *lockReader) digest(path string, n *Node) string {
	if !n.IsObject() || !r.required(path+".digest", n.Get("digest")) {
		return ""
	}
	digest := r.text(path, n, "digest")
	if !IsDigest(digest) {
		r.fault(path+".digest", "want sha256: and 64 hexadecimal digits")
	}
	return digest
}

// IsDigest reports whether a text is the digest of an image: sha256 in lower case.
func IsDigest(text string) bool {
	digits, found := strings.CutPrefix(text, "sha256:")
	return found && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// text reads a member that is a string, or absent.
func (r *lockReader) text(path string, n *Node, key string) string {
	value := n.Get(key)
	text, is := value.Text()
	if value != nil && !is {
		r.fault(path+"."+key, "want a string")
	}
	return text
}

// duration reads a member that is a duration, or absent.
func (r *lockReader) duration(path string, n *Node, key string) string {
	text := r.text(path, n, key)
	if _, err := time.ParseDuration(text); text != "" && err != nil {
		r.fault(path+"."+key, "want a duration such as 30s")
	}
	return text
}

// texts reads a member that is a list of strings, or absent.
func (r *lockReader) texts(path string, n *Node, key string) []string {
	list := n.Get(key)
	if list != nil && !list.IsList() {
		r.fault(path+"."+key, "want a list of strings")
	}
	var texts []string
	for i, item := range list.Items() {
		text, is := item.Text()
		if !is {
			r.fault(fmt.Sprintf("%s.%s[%d]", path, key, i), "want a string")
		}
		texts = append(texts, text)
	}
	return texts
}
