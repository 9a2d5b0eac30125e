// Workers in pages that are opened as files, where browsers refuse them: the script runs in a hidden frame.
// The search of the theme posts messages to its worker, and listens for those that come back. A worker that a page
// makes from its own text is not refused.
if (location.protocol === "file:") {
  const Own = window.Worker;
  window.Worker = class extends EventTarget {
    constructor(url) {
      if (String(url).startsWith("blob:")) return new Own(url);
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inner.document.createElement("script");
      script.src = new URL(url, location.href);
      this.ready = new Promise((loaded) => (script.onload = loaded));
      this.inner.document.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
