// Package browser looks at the pages in a real browser.
package browser
