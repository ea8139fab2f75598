// A page that a server shows (dsi ui) asks it for new figures as long as somebody sees it. The file that dsistat writes has no such server and asks for nothing.

function keepUp() {
  const {seconds} = document.documentElement.dataset;
  let {version} = document.documentElement.dataset,
    asking = false;
  if (!version) return;
  const said = byId("live");
  said.hidden = false;

  async function ask() {
    if (document.hidden || asking) return;
    asking = true;
    try {
      const answer = await fetch("report?seen=" + version);
      if (answer.status === 200) {
        version = answer.headers.get("Dsistore-Version");
        update(await answer.json());
        say("There are new figures.");
      } else if (answer.status !== 204) throw new Error(await answer.text());
      const failed = answer.headers.get("Dsistore-Failed");
      said.textContent = failed
        ? "Some figures are not live, the store cannot be read: " + decodeURIComponent(failed)
        : "Live: new snapshots and reads are shown within " + plural(Number(seconds), "second") + ".";
    } catch (e) {
      said.textContent = "These figures are not live any more: " + (e instanceof TypeError ? "dsi ui has ended." : e.message);
    }
    asking = false;
  }

  setInterval(ask, 1000 * seconds);
  document.addEventListener("visibilitychange", ask);
  ask();
}
