package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

// checkout copies the files of the working tree, except ignored files, as in a new checkout.
func checkout() (dir string) {
	GinkgoHelper()
	dir = filepath.Join(GinkgoT().TempDir(), "lodge")
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		Skip("not a git checkout: " + err.Error())
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join("..", name))
		if err != nil || !info.Mode().IsRegular() {
			continue // removed in the working tree, or a link to tools
		}
		b, err := os.ReadFile(filepath.Join("..", name))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, name), b, info.Mode().Perm())).To(Succeed())
	}
	return dir
}

var _ = Describe("the quickstart", func() {
	It("leads to shares in a Python array in less than five minutes", func() {
		text, err := os.ReadFile(filepath.Join("..", "docs", "start", "quickstart.md"))
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"shares.py", "open.py"} {
			program, err := os.ReadFile(filepath.Join("..", "clients", "python", "examples", name))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(ContainSubstring("```python\n"+string(program)+"```"), "the page shows another "+name)
		}
		dir := checkout()
		begin, output := time.Now(), ""
		var steps []string
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				line = strings.TrimSpace(line)
				before := time.Now()
				cmd := exec.Command("bash", "-c", "exec "+line)
				cmd.Dir = dir
				session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(func() { session.Interrupt().Wait(30 * time.Second) })
				if line == "bin/lodge dev" {
					Eventually(session.Out, 2*time.Minute).Should(gbytes.Say(`A coordinator and 3 parties run, with keys of epoch 1 and \d+ triples over p128 in stock`))
				} else {
					Eventually(session, 4*time.Minute).Should(gexec.Exit(), line)
					if session.ExitCode() != 0 && strings.Contains(line, "pip") && offline(string(session.Err.Contents())) != "" {
						Skip("no package index for pip")
					}
					Expect(session).To(gexec.Exit(0), line)
				}
				output += string(session.Out.Contents())
				steps = append(steps, line+": "+time.Since(before).Round(100*time.Millisecond).String())
			}
		}
		took := time.Since(begin)
		AddReportEntry("the quickstart took "+took.Round(time.Second).String(), strings.Join(steps, "\n"), ReportEntryVisibilityAlways)
		Expect(steps).To(HaveLen(8))
		Expect(took).To(BeNumerically("<", 5*time.Minute))
		Expect(output).To(ContainSubstring("<1000 scalar tuples over p128"))
		Expect(output).To(ContainSubstring("(1000, 2) uint64"))
		Expect(output).To(ContainSubstring("c = ab: True\nthe MACs are right: True\n"))
	})
})

// withoutFigures replaces every number and the padding before it, and the name of the parameter
// set.
func withoutFigures(text string) string {
	text = regexp.MustCompile(`with [\w-]+;`).ReplaceAllString(text, "with SET;")
	text = regexp.MustCompile(`security: \w+`).ReplaceAllString(text, "security: S")
	return regexp.MustCompile(`\s+[0-9.]+( [kMG]?B)?\b`).ReplaceAllString(text, " N")
}

var _ = Describe("the README", func() {
	It("shows the output of the demo", func() {
		text, err := os.ReadFile(filepath.Join("..", "README.md"))
		Expect(err).NotTo(HaveOccurred())
		_, shown, ok := strings.Cut(string(text), "```text\n")
		Expect(ok).To(BeTrue())
		shown, _, _ = strings.Cut(shown, "```")
		session := run(2*time.Minute, "demo", "--params", set, "--count", "100")
		Expect(session).To(gexec.Exit(0))
		for line := range strings.Lines(withoutFigures("\n" + shown)) {
			Expect(withoutFigures("\n" + string(session.Out.Contents()))).To(ContainSubstring(strings.TrimSpace(line)))
		}
	})
})

var _ = Describe("lodge dev", func() {
	It("runs until it is interrupted, and resumes with the existing cluster", func() {
		dir := filepath.Join(GinkgoT().TempDir(), "net")
		var first, second struct{ Epoch, Available uint64 }
		up := func(r any) *gexec.Session {
			GinkgoHelper()
			session := start("dev", "--dir", dir, "--params", set, "--parties", "2", "--stock", "100", "--minimal", "--json")
			Eventually(session.Out, time.Minute).Should(gbytes.Say("(?s)^{.*\n}\n"))
			Expect(json.Unmarshal(session.Out.Contents(), r)).To(Succeed())
			return session
		}
		session := up(&first)
		Expect(first.Epoch).To(Equal(uint64(1)))
		Expect(first.Available).To(BeNumerically(">=", 100))
		Eventually(session.Interrupt(), 20*time.Second).Should(gexec.Exit(0))
		session = up(&second)
		Expect(second).To(Equal(first))
		Eventually(session.Interrupt(), 20*time.Second).Should(gexec.Exit(0))
	})
})
