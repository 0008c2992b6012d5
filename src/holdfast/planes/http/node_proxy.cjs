// Required by every Node program that an agent is or starts: its http, https and fetch go through HTTP_PROXY and
// HTTPS_PROXY, which Node's own clients heed from 22.21 and 24.5 on. Without these variables nothing is changed.
'use strict'

const http = require('http')
const https = require('https')
const net = require('net')
const tls = require('tls')

const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

function heedsVariables () {
  const [major, minor] = process.versions.node.split('.').map(Number)
  return process.env.NODE_USE_ENV_PROXY === '1' && (major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21))
}

function proxyFor (secure, host, port) {
  const text = secure
    ? process.env.HTTPS_PROXY || process.env.https_proxy
    : process.env.HTTP_PROXY || process.env.http_proxy
  if (!text || goesPast(host, port)) return null
  try {
    const url = new URL(text)
    const itself = bare(url.hostname) === bare(host) && Number(url.port || 80) === Number(port) // a proxy agent's way
    return url.protocol === 'http:' && !itself ? url : null
  } catch {
    return null
  }
}

function goesPast (host, port) {
  const listed = process.env.NO_PROXY ?? process.env.no_proxy ?? ''
  const name = bare(host)
  return listed.split(',').map(entry => entry.trim().toLowerCase()).filter(Boolean).some(entry => {
    if (entry === '*') return true
    const at = /^(.*[^:]):(\d+)$/.exec(entry)
    const wanted = bare(at ? at[1] : entry).replace(/^\*?\./, '')
    if (at && Number(at[2]) !== Number(port)) return false
    return name === wanted || name.endsWith('.' + wanted)
  })
}

function bare (host) {
  return String(host).toLowerCase().replace(/^\[|\]$/g, '')
}

// Whose certificate it must be. TLS names no addresses: of one only the certificate is held against it.
function identity (host, servername) {
  const name = servername || (net.isIP(bare(host)) ? undefined : host)
  return { host: bare(host), servername: name }
}

// A connection to host and port by way of the proxy: done(error) or done(null, socket).
function tunnel (proxy, host, port, done) {
  const to = (net.isIPv6(bare(host)) ? `[${bare(host)}]` : host) + ':' + port
  const socket = net.connect({ host: bare(proxy.hostname), port: Number(proxy.port || 80) })
  const words = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  let head = Buffer.alloc(0)
  const end = error => {
    socket.removeListener('data', read)
    socket.removeListener('error', end)
    socket.removeListener('close', closed)
    if (error) socket.destroy()
    done(error, error ? undefined : socket)
  }
  const closed = () => end(Object.assign(new Error('the proxy ended the connection'), { code: 'ECONNRESET' }))
  const read = piece => {
    head = Buffer.concat([head, piece])
    const at = head.indexOf('\r\n\r\n')
    if (at < 0) return
    const status = head.toString('latin1', 0, at).split('\r\n')[0]
    socket.pause()
    if (head.length > at + 4) socket.unshift(head.subarray(at + 4))
    const refused = () => Object.assign(new Error(`the proxy answered ${status}`), { code: 'ECONNREFUSED' })
    end(/^HTTP\/1\.\d 2/.test(status) ? null : refused())
  }
  socket.on('data', read)
  socket.on('error', end)
  socket.on('close', closed)
  const auth = proxy.username ? `Proxy-Authorization: Basic ${Buffer.from(words).toString('base64')}\r\n` : ''
  socket.write(`CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n${auth}\r\n`)
}

// -- http and https: whatever agent a library makes, unless it opens its connections itself ------
function lead (Agent, secure) {
  const direct = Agent.prototype.createConnection
  Agent.prototype.createConnection = function (...given) {
    const options = typeof given[0] === 'object' ? given[0] : null
    const done = typeof given[given.length - 1] === 'function' ? given[given.length - 1] : null
    const host = options && (options.host || options.hostname || 'localhost')
    const port = options && (options.port || (secure ? 443 : 80))
    const proxy = options && done && !options.socketPath && !options.socket ? proxyFor(secure, host, port) : null
    if (!proxy) return direct.apply(this, given)
    tunnel(proxy, host, port, (error, socket) => {
      if (error) return done(error)
      if (!secure) {
        done(null, socket)
        setImmediate(() => socket.resume()) // http has its listeners by then
        return
      }
      done(null, tls.connect({ ...options, ...identity(host, options.servername), port: undefined, path: undefined, socket }))
    })
  }
}

// -- fetch: the dispatcher that it shares with every undici of the process -------------------------
function connect (options, done) {
  const secure = options.protocol === 'https:'
  const host = bare(options.hostname)
  const port = Number(options.port || (secure ? 443 : 80))
  const ready = (error, socket) => {
    if (error || !secure) return done(error, socket)
    const inner = tls.connect({ ...identity(host, options.servername), socket, ALPNProtocols: ['http/1.1'] })
    inner.once('secureConnect', () => { inner.removeListener('error', done); done(null, inner) })
    inner.once('error', done)
  }
  const proxy = proxyFor(secure, host, port)
  if (proxy) return tunnel(proxy, host, port, ready)
  const socket = net.connect({ host, port })
  socket.once('error', ready)
  socket.once('connect', () => { socket.removeListener('error', ready); ready(null, socket) })
}

function leadFetch () {
  const direct = globalThis.fetch
  if (typeof direct !== 'function') return
  let led = false
  globalThis.fetch = function fetch (...given) {
    if (!led) {
      led = true
      void globalThis.Headers // makes Node load its undici, which makes the dispatcher
      const usual = globalThis[DISPATCHER]
      if (usual && usual.constructor.name === 'Agent') globalThis[DISPATCHER] = new usual.constructor({ connect })
    }
    return direct.apply(this, given)
  }
}

if (!heedsVariables() && (process.env.HTTPS_PROXY || process.env.HTTP_PROXY)) {
  lead(http.Agent, false)
  lead(https.Agent, true)
  leadFetch()
}
