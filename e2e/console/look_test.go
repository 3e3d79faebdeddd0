//go:build console

package console

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// pages are the addresses of the pages.
var pages = []string{"/cluster", "/jobs", "/stock", "/keys", "/network", "/conduct", "/audit", "/process"}

// view is a size of a window, and a theme.
type view struct {
	name          string
	width, height int64
	scale         float64
	theme         string
	axe, layout   bool // whether axe looks at it, and whether its layout is known
}

// views are a large window, a small one, a phone, and the large window at a zoom of 200 %.
var views = []view{
	{"wide", 1440, 900, 1, "light", true, true},
	{"middle", 900, 1000, 1, "light", false, false},
	{"zoom", 720, 450, 2, "light", false, false},
	{"phone", 390, 844, 2, "light", true, true},
	{"phone", 390, 844, 2, "dark", false, false},
	{"wide", 1440, 900, 1, "dark", true, false},
}

// look looks at pages in every size, and in both themes: nothing is wider than the window, axe has no
// objection, the browser has no complaint, and the layout is the known one.
func (b *browser) look(process, state string, pages ...string) {
	b.Helper()
	for _, p := range pages {
		b.page(p)
		for i, v := range views {
			b.theme(v.theme)
			if i > 0 {
				b.size(v.width, v.height, v.scale)
				b.drawn()
			}
			name := strings.Join([]string{process, state, p[1:], v.name, v.theme}, "-")
			b.fits(name)
			if v.axe {
				b.accessible(name)
			}
			if v.layout && state != "broken" { // how many accusations and failures there are, differs
				b.knownLayout(name)
			}
			if *pictures != "" {
				b.save(filepath.Join(*pictures, name+".png"), true)
			}
		}
		b.theme(views[0].theme)
		b.size(views[0].width, views[0].height, views[0].scale)
		b.quiet(process + " " + state + " " + p)
	}
}

// fits fails the test if the page is wider than its window.
func (b *browser) fits(where string) {
	b.Helper()
	if n := value[int](b, "document.documentElement.scrollWidth - innerWidth"); n > 0 {
		b.Errorf("%s: the page is %d px wider than the window", where, n)
	}
}

// accessible fails the test if axe has an objection.
func (b *browser) accessible(where string) {
	b.Helper()
	if !value[bool](b, "typeof axe !== 'undefined'") {
		source, err := os.ReadFile(*axeSource)
		if err != nil {
			b.Fatal(err)
		}
		value[bool](b, string(source)+"\n;true")
	}
	for _, v := range value[[]string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(
		(r) => r.violations.map((v) => v.impact + " " + v.id + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")))`) {
		b.Errorf("%s: axe: %s", where, v)
	}
}

// shot takes a screenshot of the window, or of the whole page.
func (b *browser) shot(whole bool) []byte {
	b.Helper()
	p := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if whole {
		type extent struct{ Width, Height float64 }
		e := value[extent](b, "({width: innerWidth, height: Math.max(innerHeight, document.documentElement.scrollHeight)})")
		p.CaptureBeyondViewport, p.Clip = &whole, &page.Viewport{Width: e.Width, Height: e.Height, Scale: 1}
	}
	return call(b, page.CaptureScreenshot, p).Data
}

// picture takes a screenshot for the guide, if the guide's are wanted.
func (b *browser) picture(name string) {
	b.Helper()
	if *guide == "" {
		return
	}
	b.size(1280, 800, 1)
	b.drawn()
	b.save(filepath.Join(*guide, name+".png"), false)
	b.size(views[0].width, views[0].height, views[0].scale)
}

func (b *browser) save(path string, whole bool) {
	b.Helper()
	if err := os.WriteFile(path, b.shot(whole), 0o644); err != nil {
		b.Fatal(err)
	}
}

// block is the size of the squares, in pixels of the window, whose brightness makes a layout.
const block = 24

// layoutOf reduces a screenshot to the brightness of its squares: where something is, without what
// it says.
func layoutOf(shot []byte, v image.Point) (*image.Gray, error) {
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	scale := full.Bounds().Dx() / v.X
	side := block * scale
	out := image.NewGray(image.Rect(0, 0, full.Bounds().Dx()/side, full.Bounds().Dy()/side))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			sum := 0
			for dy := range side {
				for dx := range side {
					sum += int(color.GrayModel.Convert(full.At(x*side+dx, y*side+dy)).(color.Gray).Y)
				}
			}
			out.SetGray(x, y, color.Gray{Y: uint8(sum / (side * side))})
		}
	}
	return out, nil
}

// Squares differ if their brightness differs by more than faint. Numbers and their widths differ from
// run to run, in few squares.
const (
	faint = 10
	few   = 0.03
)

// differing returns the share of squares that differ.
func differing(a, b *image.Gray) float64 {
	if a.Rect != b.Rect {
		return 1
	}
	n := 0
	for i := range a.Pix {
		if d := int(a.Pix[i]) - int(b.Pix[i]); d > faint || d < -faint {
			n++
		}
	}
	return float64(n) / float64(len(a.Pix))
}

// layout returns the layout of the window. Curves, bars and colours of charts, which differ from run
// to run, are hidden; their places are not.
func (b *browser) layout() *image.Gray {
	b.Helper()
	show := func(how string) {
		value[bool](b, "(document.querySelectorAll('main canvas, main svg').forEach((e) => { e.style.visibility = '"+how+"'; }), true)")
	}
	show("hidden")
	width := value[int](b, "innerWidth")
	l, err := layoutOf(b.shot(false), image.Pt(width, 0))
	show("")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// knownLayout compares the window with the layout in the file of this name, or writes that file.
func (b *browser) knownLayout(name string) {
	b.Helper()
	value[bool](b, "(scrollTo(0, 0), true)")
	path := filepath.Join("layouts", name+".png")
	now := b.layout()
	if *rewrite {
		var out bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, now); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			b.Fatal(err)
		}
		return
	}
	known, err := readLayout(path)
	if err != nil {
		b.Fatal(err)
	}
	if share := differing(known, now); share > few {
		b.Errorf("%s: %.1f %% of the layout differ; look at it (make browser ARGS='-pictures DIR'), and if it is right, make browser ARGS=-write", name, 100*share)
	}
}

func readLayout(path string) (*image.Gray, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i, err := png.Decode(f)
	if err != nil {
		return nil, err
	}
	g, ok := i.(*image.Gray)
	if !ok {
		return nil, fmt.Errorf("%s is not grey", path)
	}
	return g, nil
}

// testComparison breaks a page in three ways, each of which the comparison of layouts must notice.
func testComparison(t *testing.T, c *cluster) {
	b := c.browse(t, "")
	b.signInBy(c.link("coordinator"))
	b.page("/cluster")
	b.knownLayout("coordinator-empty-cluster-wide-light")
	good := b.layout()
	for what, breaks := range map[string]string{
		"without the style":      "document.styleSheets[0].disabled = true",
		"without the navigation": "document.querySelector('.rail').remove()",
		"with a gap":             "document.querySelector('main').style.paddingTop = '96px'",
	} {
		b.open(c.origins["coordinator"] + "/cluster")
		b.settled("/cluster")
		value[bool](b, "("+breaks+", true)")
		share := differing(good, b.layout())
		t.Logf("%s: %.1f %% of the layout differ", what, 100*share)
		if share <= few {
			t.Errorf("%s: that is too few to be noticed", what)
		}
	}
}
