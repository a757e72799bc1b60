/** Raw requests that no client library would send: odd targets, hosts, headers and lengths, and truncated ones. */
import fc from 'fast-check'

export interface RawRequest {
  readonly bytes: string
  /** What is done after the bytes: say that no more comes, go without a word, or keep the server waiting. */
  readonly then: 'end' | 'cut' | 'hold'
  /** Which of the two ports. */
  readonly port: 'http' | 'ws'
}

const methods = [
  'GET',
  'POST',
  'OPTIONS',
  'HEAD',
  'PUT',
  'CONNECT',
  'TRACE',
  'PRI',
  'get',
  'G E T',
  '',
  'X'.repeat(500),
]
const targets = [
  '/',
  '//',
  '///',
  '//evil.example/tasks',
  '/tasks',
  '/tasks/',
  '/tasks//',
  '/tasks?',
  '/tasks?limit=1&limit=2&__proto__=1',
  '/tasks?limit=%E0%A4%A',
  '/tasks/%00',
  '/tasks/%E0%A4%A/events',
  '/tasks/../../etc/passwd',
  '/tasks/__proto__/events',
  '/worker',
  '/ws',
  '/health',
  '/register',
  '/\\',
  '/#',
  '?',
  '*',
  '',
  'tasks',
  'http://127.0.0.1/tasks',
  'http://evil.example/tasks',
  'http://[',
  'http://a:b@127.0.0.1:99999/tasks',
  'file:///etc/passwd',
  'evil.example:443',
  `/${'a'.repeat(20_000)}`,
]
const versions = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/9', 'ICY', '']
const hosts = [
  'Host: 127.0.0.1',
  'Host: 127.0.0.1',
  'Host: 127.0.0.1',
  'Host: localhost:99999',
  'Host: evil.example',
  'Host: [',
  'Host: ',
  'Host: 127.0.0.1\r\nHost: evil.example',
  'Host: a b',
  'hOsT:127.0.0.1@evil.example',
]
const headers = [
  'Connection: close',
  'Connection: keep-alive, Upgrade',
  'Upgrade: websocket',
  'Upgrade: h2c',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Version: x',
  'Sec-WebSocket-Protocol: a,b,,c',
  'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99',
  'Content-Type: application/json',
  'Content-Type: \u00ff',
  'Content-Length: 2',
  'Content-Length: 0',
  'Content-Length: -1',
  'Content-Length: 1e3',
  'Content-Length: 5, 6',
  'Content-Length: 99999999999999999999',
  'Content-Length: 2\r\nContent-Length: 3',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: xchunked',
  'Expect: 100-continue',
  'Expect: a miracle',
  'Origin: http://evil.example',
  'Origin: null',
  'Authorization: Bearer ',
  'Authorization: \u0001',
  'Last-Event-ID: -1',
  'Last-Event-ID: 99999999999999999999',
  ' folded: line',
  'No colon',
  ': no name',
  'A\u0000B: c',
]
const bodies = [
  '',
  '{}',
  '{',
  '[]',
  'zz\r\n',
  '2\r\n{}\r\n0\r\n\r\n',
  'ffffffffffffffff\r\n',
  '\x81\x05hello',
  '\xff\xff\xff\xff',
]

/** More headers, or longer ones, than a server accepts. */
const flood = fc.oneof(
  fc.integer({ min: 100, max: 3000 }).map((count) => Array.from({ length: count }, (_, at) => `X-${at}: ${at}`)),
  fc.integer({ min: 1000, max: 40_000 }).map((length) => [`X: ${'y'.repeat(length)}`]),
)

const whole = fc
  .tuple(
    fc.constantFrom(...methods, 'GET', 'GET', 'POST', 'POST'),
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...targets) }, fc.string({ maxLength: 40 })),
    fc.constantFrom(...versions),
    fc.option(fc.constantFrom(...hosts), { freq: 10 }),
    fc.array(fc.constantFrom(...headers), { maxLength: 7 }),
    fc.option(flood, { freq: 1, nil: [] }),
    fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...bodies) }, fc.string({ maxLength: 200 })),
  )
  .map(([method, target, version, host, some, more, body]) =>
    [`${method} ${target} ${version}`, ...(host === null ? [] : [host]), ...some, ...more, '', body].join('\r\n'),
  )
const half = fc.tuple(whole, fc.nat()).map(([bytes, at]) => bytes.slice(0, at % (bytes.length + 1)))
const noise = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array).toString('latin1'))

export const rawRequest: fc.Arbitrary<RawRequest> = fc.record({
  bytes: fc.oneof({ weight: 6, arbitrary: whole }, { weight: 3, arbitrary: half }, noise),
  then: fc.constantFrom('end' as const, 'end' as const, 'end' as const, 'cut' as const, 'hold' as const),
  port: fc.constantFrom('http' as const, 'http' as const, 'http' as const, 'ws' as const),
})
