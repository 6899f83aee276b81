package view

import "unicode/utf8"

// Size is that of a font, in pixels.
type FontSize float64

// ascent and descent are how far letters reach above and below the baseline, in parts
// of the size.
const (
	ascent  = 0.95
	descent = 0.28
)

// The widths of letters in parts of the size are those of the widest font that the
// page may get, DejaVu Sans, rounded up: with any other one there is more room.
const (
	slim          = "ijlIJ.,:;'| \u00b7"
	thin          = "frt()[]/\\-!"
	narrowLetters = "\"sczy"
	broad         = "GOQ+<>=~#NHDUVw&"
	wide          = "mMW@%…"

	slimWidth    = 0.34
	thinWidth    = 0.42
	narrowLetter = 0.56
	usualWidth   = 0.66
	upperWidth   = 0.72
	broadWidth   = 0.84
	wideLetter   = 1.0
	otherWidth   = 1.4
)

// Width is how wide a text is at most.
func (s FontSize) Width(text string) float64 {
	sum := 0.0
	for _, r := range text {
		sum += letter(r)
	}
	return sum * float64(s)
}

func letter(r rune) float64 {
	switch {
	case has(slim, r):
		return slimWidth
	case has(thin, r):
		return thinWidth
	case has(narrowLetters, r):
		return narrowLetter
	case has(broad, r):
		return broadWidth
	case has(wide, r):
		return wideLetter
	case r >= utf8.RuneSelf:
		return otherWidth
	case r >= 'A' && r <= 'Z':
		return upperWidth
	}
	return usualWidth
}

func has(set string, r rune) bool {
	for _, s := range set {
		if s == r {
			return true
		}
	}
	return false
}

// box is what a text covers.
func (s FontSize) box(x, y float64, a Anchor, text string) box {
	w := s.Width(text)
	switch a {
	case AnchorMiddle:
		x -= w / 2
	case AnchorEnd:
		x -= w
	}
	return box{x, y - ascent*float64(s), x + w, y + descent*float64(s)}
}

// minCut is how many letters a shortened text has at least: with less it says nothing.
const minCut = 3

// Cut shortens a text to what fits into the room; it is empty when that is too little.
func (s FontSize) Cut(text string, room float64) string {
	if s.Width(text) <= room {
		return text
	}
	runes := []rune(text)
	for len(runes) > minCut {
		runes = runes[:len(runes)-1]
		if short := string(runes) + "…"; s.Width(short) <= room {
			return short
		}
	}
	return ""
}
