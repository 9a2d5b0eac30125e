// The theme's search matches every word of a query as a beginning: "in" would find "install". Words that say
// nothing are left out of a query, unless there are no others.
{
  const IGNORED = "a an and are as at be by can do does for from how i in is it my of on or the to what when which with";
  const ignored = new Set(IGNORED.split(" "));
  const QUERY = 2;
  const kept = (query) => query.split(" ").filter((word) => !ignored.has(word.toLowerCase())).join(" ") || query;
  const Plain = window.Worker;
  window.Worker = class extends Plain {
    postMessage(message) {
      super.postMessage(message.type === QUERY ? { ...message, data: kept(message.data) } : message);
    }
  };
}
