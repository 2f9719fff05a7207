// Pages opened from the disk may start no worker, which the search is. There a hidden frame does its work instead: it loads the
// same script, with `postMessage` to and from this page, and `importScripts` that adds script elements.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = Object.assign(document.createElement("iframe"), { hidden: true })
      document.body.append(frame)
      const inside = frame.contentWindow
      this.post = message => inside.dispatchEvent(new inside.MessageEvent("message", { data: message }))
      inside.postMessage = message => {
        const event = new MessageEvent("message", { data: message })
        this.dispatchEvent(event)
        this.onmessage?.(event)
      }
      const load = address => new Promise((done, failed) => {
        const script = inside.document.createElement("script")
        Object.assign(script, { src: address, onload: done, onerror: failed })
        inside.document.body.append(script)
      })
      inside.importScripts = async (...addresses) => { for (const one of addresses) await load(one) }
      this.ready = load(new URL(url, location).href)
    }
    postMessage(message) { this.ready.then(() => this.post(message)) }
    terminate() {}
  }
}
