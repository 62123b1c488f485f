package label_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/test/expect"
)

// texts are ids as platforms may choose them, up to the longest.
var texts = map[string]struct{ reason, id, coded string }{
	"Empty":       {"nothing stays nothing", "", ""},
	"Plain":       {"most ids stand as they are", "8f14e45f-ceea-467f-a8f1-0a1b2c3d4e5f", "8f14e45f-ceea-467f-a8f1-0a1b2c3d4e5f"},
	"Signs":       {"also with the signs that tags take", "a+b-c=d._:/@ e", "a+b-c=d._:/@ e"},
	"Others":      {"others are encoded", "a#b", "=YSNi"},
	"Letters":     {"also letters that not every tag takes", "ä", "=w6Q"},
	"Mark":        {"what looks encoded is encoded", "=YSNi", "=PVlTTmk"},
	"SpaceBefore": {"space at an end might be cut off", " a", "=IGE"},
	"SpaceAfter":  {"space at an end might be cut off", "a ", "=YSA"},
	"Reserved":    {"AWS keeps this for itself", "AWS:a", "=QVdTOmE"},
	"Inside":      {"only at the beginning", "a/aws:b", "a/aws:b"},
	"Long":        {"length alone is no reason", strings.Repeat("a", limits.Identifier), strings.Repeat("a", limits.Identifier)},
	"LongSpaces":  {"but it has more ends", strings.Repeat("a ", 200) + "b", "=" + strings.Repeat("YSBhIGEg", 66) + "YSBhIGI"},
}

func TestTextsAreCoded(t *testing.T) {
	for name, tc := range texts {
		got := label.Encode(tc.id)
		if back, err := label.Decode(got); got != tc.coded || back != tc.id || err != nil {
			t.Errorf("%s, %s: %q, want %q; read as %q: %v", name, tc.reason, got, tc.coded, back, err)
		}
	}
	if _, err := label.Decode("=%"); err == nil {
		t.Error("what was never encoded was decoded")
	}
}

// However long an id is, and of whatever characters, each label is within what
// every service takes, and the tags can be read again from them.
func TestLabelsHoldTheWholeKey(t *testing.T) {
	letters := regexp.MustCompile(`^[A-Za-z0-9 +\-=._:/@]+$`)
	for name, id := range map[string]string{
		"Usual": "8f14e45f-ceea-467f-a8f1-0a1b2c3d4e5f", "Angles": strings.Repeat("<", limits.Identifier),
		"Braces": strings.Repeat("{", 690), "Wide": strings.Repeat("漢", 266), "Long": strings.Repeat("x", limits.Identifier),
		"Spaces": "a" + strings.Repeat(" ", limits.Identifier-2) + "b",
		"Just":   strings.Repeat("x", limits.TagValue), "JustMore": strings.Repeat("x", limits.TagValue+1),
		"Mark": strings.Repeat("=", 300), "Reserved": strings.Repeat("x", limits.TagValue) + "aws:y",
	} {
		t.Run(name, func(t *testing.T) {
			tags := provider.Tags{Platform: "platform-1", Instance: id, Binding: id, Incarnation: "0123456789012345678901"}
			written := map[string]string{"aws:cloudformation:stack-name": "x"}
			for _, l := range label.Write(tags) {
				if _, twice := written[l.Name]; twice || len(l.Value) > limits.TagValue || !letters.MatchString(l.Value) ||
					l.Value != strings.TrimSpace(l.Value) || strings.HasPrefix(l.Value, "aws:") {
					t.Errorf("label %q has the value %q", l.Name, l.Value)
				}
				written[l.Name] = l.Value
			}
			if len(written) > limits.Tags {
				t.Errorf("%d labels", len(written))
			}
			expect.Same(t, "what was written", tags, expect.Get(label.Read(written))(t))
		})
	}
	instance := provider.Tags{Platform: "p", Instance: "i", Incarnation: "o"}
	expect.Same(t, "labels of what belongs to an instance", 3, len(label.Write(instance)))
}
