// A client of tick.v1 in Go, and its driver for the conformance kit (docs/conformance.md).
// It follows instruments, comes back, and resumes where it was.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

type object = map[string]any

// Client holds the newest item of each instrument, and where to resume.
type Client struct {
	sync.Mutex
	Messages  int               `json:"messages"`
	ComesBack bool              `json:"comes_back"`
	Items     map[string]object `json:"items"`
	Position  object            `json:"position"`
	Rejected  map[string]any    `json:"rejected"`

	keys       []string
	interval   int
	epoch      any
	line       *websocket.Conn
	silence    time.Duration
	notice     *time.Duration
	tries      int
	asked      map[string][]string // keys by the id of their subscribe, until it is answered
	isDue      bool                // a snapshot is not complete
	isComplete bool                // every key had its snapshot: the position is one of all
	ids        int
}

// Run follows until the context ends, or the server closes for good.
func (c *Client) Run(ctx context.Context, url string) {
	for ctx.Err() == nil {
		code := c.follow(ctx, url)
		c.Lock()
		wait := time.Duration(rand.Float64() * float64(min(30*time.Second, 500*time.Millisecond<<min(c.tries, 6))))
		c.tries++
		if c.notice != nil {
			wait = *c.notice
		} else if code == 4429 {
			wait = 30 * time.Second
		}
		c.notice, c.line = nil, nil
		isFinal := code == 1000 || code == 1003 || 1007 <= code && code <= 1009 || 4500 <= code && code < 5000
		c.ComesBack = !isFinal
		c.Unlock()
		if isFinal {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// follow one connection to its end; return its close code, -1 if there was none.
func (c *Client) follow(ctx context.Context, url string) websocket.StatusCode {
	line, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"tick.v1"}})
	if err != nil {
		return -1
	}
	defer line.CloseNow()
	line.SetReadLimit(1 << 24)
	c.Lock()
	c.line, c.silence, c.isDue, c.asked = line, 12500*time.Millisecond, false, map[string][]string{}
	c.ask(c.keys, c.isComplete)
	c.Unlock()
	for {
		waiting, end := context.WithTimeout(ctx, c.silence)
		_, data, err := line.Read(waiting)
		end()
		if err != nil {
			return websocket.CloseStatus(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber() // no digit is lost
		var message object
		if decoder.Decode(&message) == nil {
			c.Lock()
			c.take(message)
			c.Messages++
			c.Unlock()
		}
	}
}

// ask for keys; all of what is held comes anew but after a position.
func (c *Client) ask(keys []string, resumes bool) {
	if c.line == nil || len(keys) == 0 {
		return
	}
	message := object{"op": "subscribe", "keys": keys}
	if c.interval > 0 {
		message["min_interval_ms"] = c.interval
	}
	if resumes {
		message["since"] = c.Position
	} else {
		c.isComplete = false
	}
	c.asked[c.say(message)] = keys
}

func (c *Client) say(message object) string {
	c.ids++
	id := fmt.Sprint(c.ids)
	message["id"] = id
	data, _ := json.Marshal(message)
	_ = c.line.Write(context.Background(), websocket.MessageText, data)
	return id
}

func (c *Client) take(message object) {
	id, _ := message["id"].(string)
	switch message["type"] {
	case "welcome":
		c.silence = milliseconds(message["heartbeat_ms"]) * 5 / 2
	case "ack":
		if message["op"] == "subscribe" {
			delete(c.asked, id)
			c.tries = 0
			c.isDue = c.isDue || len(list(message["accepted"])) > 0
			for _, each := range list(message["rejected"]) {
				one, _ := each.(object)
				key, _ := one["key"].(string)
				c.Rejected[key] = one["code"]
			}
		}
	case "error":
		keys := c.asked[id]
		if message["code"] == "rate_limited" {
			line := c.line
			time.AfterFunc(milliseconds(message["retry_after_ms"]), func() {
				c.Lock()
				defer c.Unlock()
				if delete(c.asked, id); line == c.line {
					c.ask(keys, false)
				}
			})
			return
		}
		delete(c.asked, id)
		for _, key := range keys {
			c.Rejected[key] = message["code"]
		}
	case "snapshot", "update":
		c.enter(message["epoch"])
		for _, each := range list(message["data"]) {
			item, _ := each.(object)
			isin, _ := item["isin"].(string)
			if known := c.Items[isin]; known == nil || !isOlder(item, known) {
				c.Items[isin] = item
			}
		}
		if message["type"] == "update" || message["final"] == true {
			c.isDue = c.isDue && message["type"] == "update"
			c.hold(message)
		}
	case "heartbeat":
		c.hold(message)
	case "notice":
		delay := milliseconds(message["reconnect_after_ms"])
		c.notice = &delay
	}
}

// enter another epoch, which is another truth.
func (c *Client) enter(epoch any) {
	if epoch != nil && epoch != c.epoch {
		clear(c.Items)
		c.epoch, c.Position = epoch, nil
	}
}

// hold a position, once each key has had its snapshot.
func (c *Client) hold(message object) {
	if message["epoch"] == nil || c.isDue || len(c.asked) > 0 {
		return
	}
	c.isComplete = true
	c.Position = object{"epoch": message["epoch"], "offset": message["offset"]}
}

func isOlder(one, known object) bool {
	for _, name := range []string{"revision", "time", "seq"} {
		if before, after := number(known[name]), number(one[name]); before != after {
			return after < before
		}
	}
	return false
}

func number(value any) int64 {
	text, _ := value.(json.Number)
	whole, _ := text.Int64()
	return whole
}

func milliseconds(value any) time.Duration { return time.Duration(number(value)) * time.Millisecond }

func list(value any) []any {
	all, _ := value.([]any)
	return all
}

// order is a line of the kit.
type order struct {
	Do, URL  string
	Keys     []string
	Interval int `json:"min_interval_ms"`
}

func main() {
	fmt.Println(`{"client":"Go","says":["items","position","rejected"],"takes":["min_interval_ms"]}`)
	var client *Client
	end := func() {}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var told order
		if json.Unmarshal(lines.Bytes(), &told) != nil {
			continue
		}
		if told.Do == "follow" || told.Do == "end" {
			end()
		}
		if told.Do == "follow" {
			var ctx context.Context
			ctx, end = context.WithCancel(context.Background())
			client = &Client{ComesBack: true, Items: map[string]object{},
				Rejected: map[string]any{}, keys: told.Keys, interval: told.Interval}
			go client.Run(ctx, told.URL)
			continue
		}
		client.Lock()
		switch told.Do {
		case "also":
			client.keys = append(client.keys, told.Keys...)
			client.ask(told.Keys, false)
		case "unfollow":
			isGone := func(key string) bool { return slices.Contains(told.Keys, key) }
			client.keys = slices.DeleteFunc(client.keys, isGone)
			client.say(object{"op": "unsubscribe", "keys": told.Keys})
		case "report":
			line, _ := json.Marshal(client)
			fmt.Println(string(line))
		}
		client.Unlock()
	}
}
