"use strict";
/* The textures of a draw with their levels; what the frame's jobs draw to. */
(() => {
  const level = {};
  let channels = "rgb";

  const picture = (question, values, props = {}) => {
    const image = V.el("img", { alt: "", ...props });
    V.ask(question, values).then((address) => { image.src = address; }, (error) => image.replaceWith(V.note(error.message)));
    return image;
  };

  const replace = (place, job, texture) => V.el("label.link", { title: "A PNG file of the same size in its place" }, "replace…",
    V.el("input", { type: "file", accept: "image/png", hidden: true, onchange: async (event) => {
      const [file] = event.target.files;
      if (!file) return;
      const bytes = new Uint8Array(await file.arrayBuffer());
      let text = "";
      for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
      try {
        const edition = await V.edit({ frame: place.frame, edition: place.edition, job, file: texture.file, png: btoa(text) });
        V.editions = Math.max(V.editions, edition + 1);
        V.go({ edition });
      } catch (error) { V.say(error.message); }
    } }));

  const card = (place, job, texture, number) => {
    const key = `${texture.address}`;
    const at = Math.min(level[key] || 0, texture.levels.length - 1);
    const now = texture.levels[at];
    return V.el("article.texture", {},
      texture.shows ? picture("texture", { frame: place.frame, edition: place.edition, draw: place.draw, texture: number, level: at, channels: texture.alpha ? channels : "rgb" }, { class: "texels" }) : V.note(`${texture.type} is not shown as a picture.`),
      V.el("div", {},
        V.el("h3", {}, `${texture.width}×${texture.height} ${texture.type}`, V.el("code.faint", {}, V.address(texture.address))),
        V.el("p", {}, `${texture.stage} program, request ${texture.request}${texture.cube ? ", cube map" : ""}`),
        V.el("p.faint", {}, `filters ${texture.filters}; wrap ${texture.wrap}`),
        texture.drawn_by > 0 && V.el("p", {}, "drawn by ", V.link(`job ${texture.drawn_by}`, () => V.goJob(texture.drawn_by))),
        now && V.el("p.faint", {}, `level ${at}: ${now.width}×${now.height}, ${now.tiling}, ${V.count(now.bytes)} bytes at ${V.address(now.address)}`),
        texture.levels.length > 1 && V.choice(texture.levels.map((one, number) => [number, String(number), `${one.width}×${one.height}`]), at, (name) => { level[key] = name; V.refresh(); }, "Level"),
        texture.file && !V.inside && V.el("p", {}, replace(place, job, texture))));
  };

  V.views.textures = {
    title: "Textures", key: "6", depends: ["frame", "edition", "draw"],
    async render(place) {
      const draw = V.frame.draws[(place.draw || 0) - 1];
      if (!draw) return V.note("Before any draw there are no textures: choose a draw.");
      const found = await V.ask("textures", { frame: place.frame, edition: place.edition, draw: place.draw });
      const names = [["rgb", "colours"], ["alpha", "alpha"], ["rgba", "both"]].filter(([name]) => !V.inside || name !== "rgba");
      return [V.el("div.bar", {}, V.el("h2", {}, `Textures of draw ${place.draw}`), found.some((one) => one.alpha) && V.choice(names, channels, (name) => { channels = name; V.refresh(); }, "Channels")), found.length ? found.map((one, number) => card(place, draw.job, one, number)) : V.note("Its programs sample no texture.")];
    },
  };

  V.views.targets = {
    title: "Targets", key: "7", depends: ["frame", "edition", "job"],
    async render(place) {
      const jobs = V.frame.jobs.slice(0, 60);
      return [
        V.el("h2", {}, "Render targets"),
        jobs.map((job) => V.el("article.texture", { class: job.job === V.jobNow() ? "now" : "" },
          (job.colour !== null || job.full.length) && !job.wide ? picture("target", { frame: place.frame, edition: place.edition, job: job.job }) : V.note(job.wide ? "Its colours have 64 bits." : "It stores no picture."),
          V.el("div", {},
            V.el("h3", {}, V.link(`job ${job.job}`, () => V.goJob(job.job)), V.el("span.faint", {}, job.name ? ` ${job.name}` : "")),
            V.el("p", {}, `${job.width}×${job.height}, ${job.grid.join("×")} tiles${job.multisample ? ", 4 samples" : ""}${job.full.length ? ", all stored" : ""}${job.wide ? ", 64-bit colours" : ""}; ${V.many(job.draws.length, "draw")}`),
            job.surfaces.map((one) => V.el("p.faint", {}, `${one.buffer} ${V.address(one.address)}, ${one.bits} bits, ${one.tiling}, ${V.count(one.pitch)} bytes a row`))))),
        V.frame.jobs.length > 60 && V.note(`${V.frame.jobs.length - 60} more jobs are left out.`)];
    },
  };
})();
