// Search on a page that was opened from disk, where browsers start no workers: a hidden frame
// does a worker's job.
if (location.protocol === "file:") {
  const load = (frame, url) =>
    new Promise((done, failed) => {
      const script = frame.document.createElement("script");
      script.onload = done;
      script.onerror = failed;
      script.src = url;
      frame.document.head.append(script);
    });

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.holder = document.createElement("iframe");
      this.holder.hidden = true;
      document.body.append(this.holder);
      this.frame = this.holder.contentWindow;
      this.frame.importScripts = (...urls) => Promise.all(urls.map((one) => load(this.frame, one)));
      this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(this.frame, url);
    }

    postMessage(data) {
      const told = () => this.frame.dispatchEvent(new MessageEvent("message", { data }));
      this.ready.then(told);
    }

    terminate() {
      this.holder.remove();
    }
  };
}
