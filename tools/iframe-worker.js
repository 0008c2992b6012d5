// Browsers start no worker for a page that was opened from a disk. There the search runs in a hidden frame instead, which
// is asked and answers as a worker does. The name tells the theme that it need not fetch one from the network.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html><body></body>";
      this.frame = frame;
      this.started = new Promise((resolve) => {
        frame.onload = () => resolve(this.start(new URL(url, location.href).href));
      });
      document.body.append(frame);
    }

    start(url) {
      const inner = this.frame.contentWindow;
      const load = (src) =>
        new Promise((resolve, reject) => {
          const script = inner.document.createElement("script");
          Object.assign(script, { src, onload: resolve, onerror: reject });
          inner.document.body.append(script);
        });
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      inner.importScripts = async (...urls) => {
        for (const one of urls) await load(one);
      };
      return load(url);
    }

    async postMessage(data) {
      await this.started;
      const inner = this.frame.contentWindow;
      inner.dispatchEvent(new inner.MessageEvent("message", { data: structuredClone(data) }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
