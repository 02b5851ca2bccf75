// The line to the server: opened anew when it breaks, and closed while nobody looks, which spares the runs' processor.
const FIRST_WAIT = 1000, LONGEST_WAIT = 30000, SILENCE = 50000;

export class Feed {
  // Args: parts gets what changed; told gets (state, text) of the line itself.
  constructor(address, parts, told) {
    Object.assign(this, { address, parts, told, wait: FIRST_WAIT, source: null, timer: null, watch: null, seen: new Date() });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.resume()));
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => event.persisted && this.resume());
    addEventListener("online", () => this.resume());
  }

  open() {
    this.close();
    if (document.hidden) return this.pause();
    this.source = new EventSource(this.address);
    const source = this.source;
    source.addEventListener("parts", (event) => {
      if (source !== this.source) return;
      this.wait = FIRST_WAIT;
      this.heard();
      this.parts(JSON.parse(event.data));
      this.told("live", "live");
    });
    source.addEventListener("beat", () => this.heard());
    source.addEventListener("error", () => source === this.source && this.again());
    return undefined;
  }

  // The server says something every 15 s. A line that is silent for longer is dead, even where the browser has not noticed, as after a
  // laptop's sleep.
  heard() {
    this.seen = new Date();
    clearTimeout(this.watch);
    this.watch = setTimeout(() => this.again(), SILENCE);
  }

  again() {
    this.close();
    this.told("lost", `reconnecting; as of ${this.seen.toLocaleTimeString("en", { hour12: false })}`);
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, 2 * this.wait);
  }

  pause() {
    this.close();
    this.told("paused", "paused while hidden");
  }

  resume() {
    if (this.source) return;
    this.wait = FIRST_WAIT;
    this.open();
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.watch);
    this.source?.close();
    this.source = null;
  }
}
