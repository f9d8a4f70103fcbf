// The peer of bench/fanout.py: a fan-out as small as it can be in Go, of one core.
//
// It reads the last values and the channel from Redis as a gateway does, joins each
// client's rows as bytes, and writes. It knows no slow client, no limits, no resume, no
// groups and no positions: it is how fast the same frames can go out, not a gateway.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const beat = 5 * time.Second

type position struct {
	Epoch   string `json:"epoch"`
	Offset  int64  `json:"offset"`
	Window  int64  `json:"window"`
	Windows int64  `json:"windows"`
}

type client struct {
	line    net.Conn
	numbers []int
	sent    time.Time
}

// server has every client, and the newest item of each instrument by its number.
type server struct {
	sync.Mutex
	here    position
	numbers map[string]int
	items   [][]byte
	clients map[*client]struct{}
}

func main() {
	redis, address := os.Args[1], os.Args[2]
	s := &server{numbers: map[string]int{}, clients: map[*client]struct{}{}}
	line := dial(redis)
	line.ask("SUBSCRIBE", "tt:updates")
	s.load(redis)
	go s.follow(line)
	go s.beat()
	http.HandleFunc("/v1/stream", s.stream)
	log.Fatal(http.ListenAndServe(address, nil))
}

// load the last values, and up to where they are.
func (s *server) load(redis string) {
	line := dial(redis)
	defer line.Close()
	meta := fields(line.ask("HGETALL", "tt:meta"))
	s.here.Epoch = string(meta["epoch"])
	fmt.Sscan(string(meta["offset"]), &s.here.Offset)
	fmt.Sscan(string(meta["window"]), &s.here.Window)
	for isin, value := range fields(line.ask("HGETALL", "tt:last")) {
		parts := bytes.SplitN(value, []byte(" "), 3)
		s.items[s.number(isin)] = item(parts[2], []byte("0"))
	}
}

func (s *server) number(isin string) int {
	number, isKnown := s.numbers[isin]
	if !isKnown {
		number = len(s.items)
		s.numbers[isin] = number
		s.items = append(s.items, nil)
	}
	return number
}

// item adds the sums of a row's trades to its body.
func item(body, sums []byte) []byte {
	names := []string{"trades", "volume", "value", "high", "low"}
	built := append([]byte{}, body[:len(body)-1]...)
	for at, sum := range bytes.Split(sums, []byte(",")) {
		if len(sum) > 0 {
			built = fmt.Appendf(built, `,"%s":%s`, names[at], sum)
		}
	}
	return append(built, '}')
}

// follow the channel, and send each window to everybody.
func (s *server) follow(line *redisLine) {
	for {
		reply := line.read().([]any)
		s.publish(reply[2].([]byte))
	}
}

func (s *server) publish(message []byte) {
	message, _, _ = bytes.Cut(message, []byte("\n\n"))
	lines := bytes.Split(message, []byte("\n"))
	s.Lock()
	defer s.Unlock()
	if err := json.Unmarshal(lines[0], &s.here); err != nil {
		log.Fatal(err)
	}
	changed := make([][]byte, len(s.items), len(s.items)+len(lines))
	for _, row := range lines[1:] {
		parts := bytes.SplitN(row, []byte(" "), 4)
		number := s.number(string(parts[0]))
		for number >= len(changed) {
			changed = append(changed, nil)
		}
		changed[number] = item(parts[3], parts[2])
		s.items[number] = item(parts[3], []byte("0"))
	}
	head := fmt.Appendf(nil, `{"type":"update",%s,"data":[`, s.place())
	now, frame := time.Now(), make([]byte, 0, 1<<16)
	for client := range s.clients {
		frame = append(frame[:0], 0, 0, 0, 0) // room for the header
		frame = append(frame, head...)
		empty := len(frame)
		for _, number := range client.numbers {
			if number < len(changed) && changed[number] != nil {
				frame = append(append(frame, changed[number]...), ',')
			}
		}
		if len(frame) > empty {
			frame[len(frame)-1] = ']'
			client.sent = now
			client.line.Write(framed(append(frame, '}')))
		}
	}
}

func (s *server) place() string {
	return fmt.Sprintf(`"epoch":%q,"offset":%d,"window":%d`, s.here.Epoch, s.here.Offset, s.here.Window)
}

// beat has everybody hear something in time.
func (s *server) beat() {
	for now := range time.Tick(beat / 10) {
		s.Lock()
		frame := framed(fmt.Appendf(make([]byte, 4), `{"type":"heartbeat",%s,"server_time":%d}`, s.place(), now.UnixMicro()))
		for client := range s.clients {
			if now.Sub(client.sent) >= beat {
				client.sent = now
				client.line.Write(frame)
			}
		}
		s.Unlock()
	}
}

// framed puts the header of a WebSocket text frame into the four bytes before it.
func framed(frame []byte) []byte {
	size := len(frame) - 4
	switch {
	case size < 126:
		frame[2], frame[3] = 0x81, byte(size)
		return frame[2:]
	case size < 1<<16:
		frame[0], frame[1] = 0x81, 126
		binary.BigEndian.PutUint16(frame[2:], uint16(size))
		return frame
	}
	long := make([]byte, 10, size+10)
	long[0], long[1] = 0x81, 127
	binary.BigEndian.PutUint64(long[2:], uint64(size))
	return append(long, frame[4:]...)
}

// stream serves one client until it goes.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	line, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer line.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	accept := base64.StdEncoding.EncodeToString(sum[:])
	fmt.Fprintf(line, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept)
	me := &client{line: line, sent: time.Now()}
	line.Write(framed(fmt.Appendf(make([]byte, 4), `{"type":"welcome","protocol":"tick.v1","heartbeat_ms":%d}`, beat.Milliseconds())))
	for {
		code, payload, err := read(buffered.Reader)
		if err != nil || code == 8 {
			break
		}
		var said struct {
			ID   any      `json:"id"`
			Keys []string `json:"keys"`
		}
		if json.Unmarshal(payload, &said) == nil && len(said.Keys) > 0 {
			s.subscribe(me, said.ID, said.Keys)
		}
	}
	s.Lock()
	delete(s.clients, me)
	s.Unlock()
}

func (s *server) subscribe(me *client, id any, keys []string) {
	s.Lock()
	defer s.Unlock()
	accepted, _ := json.Marshal(keys)
	named, _ := json.Marshal(id)
	line := fmt.Appendf(make([]byte, 4), `{"type":"ack","id":%s,"op":"subscribe","accepted":%s,"rejected":[],"count":%d,"resumed":false}`, named, accepted, len(keys))
	me.line.Write(framed(line))
	data := []string{}
	for _, key := range keys {
		if number, isKnown := s.numbers[key]; isKnown {
			me.numbers = append(me.numbers, number)
			data = append(data, string(s.items[number]))
		}
	}
	me.line.Write(framed(fmt.Appendf(make([]byte, 4), `{"type":"snapshot",%s,"final":true,"data":[%s]}`, s.place(), strings.Join(data, ","))))
	s.clients[me] = struct{}{}
}

// read one frame of a client, which masks what it sends.
func read(line *bufio.Reader) (byte, []byte, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(line, head); err != nil {
		return 0, nil, err
	}
	size := uint64(head[1] & 127)
	if more := map[uint64]int{126: 2, 127: 8}[size]; more > 0 {
		long := make([]byte, 8)
		if _, err := io.ReadFull(line, long[8-more:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(long)
	}
	masked := make([]byte, 4+size)
	if _, err := io.ReadFull(line, masked); err != nil {
		return 0, nil, err
	}
	payload := masked[4:]
	for at := range payload {
		payload[at] ^= masked[at&3]
	}
	return head[0] & 15, payload, nil
}

// redisLine speaks as much of Redis's protocol (RESP2) as is needed.
type redisLine struct {
	net.Conn
	reader *bufio.Reader
}

func dial(address string) *redisLine {
	line, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	return &redisLine{line, bufio.NewReaderSize(line, 1<<20)}
}

func (r *redisLine) ask(words ...string) any {
	fmt.Fprintf(r, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(r, "$%d\r\n%s\r\n", len(word), word)
	}
	return r.read()
}

func (r *redisLine) read() any {
	line, err := r.reader.ReadString('\n')
	if err != nil {
		log.Fatal(err)
	}
	count := 0
	fmt.Sscan(line[1:], &count)
	switch line[0] {
	case '$':
		value := make([]byte, count+2)
		if _, err := io.ReadFull(r.reader, value); err != nil {
			log.Fatal(err)
		}
		return value[:count]
	case '*':
		values := make([]any, count)
		for at := range values {
			values[at] = r.read()
		}
		return values
	}
	return line
}

func fields(reply any) map[string][]byte {
	values := reply.([]any)
	named := map[string][]byte{}
	for at := 0; at < len(values); at += 2 {
		named[string(values[at].([]byte))] = values[at+1].([]byte)
	}
	return named
}
