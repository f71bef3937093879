// A raw HTTP/1.1 request, as trigger --out writes it.
export function parse(raw) {
  const cut = raw.indexOf('\r\n\r\n');
  if (cut < 0) throw Error(`no empty line in ${raw.toString('latin1')}`);
  const [first, ...lines] = raw.toString('latin1', 0, cut).split('\r\n');
  const headers = {};
  for (const l of lines) {
    const i = l.indexOf(':');
    headers[l.slice(0, i).toLowerCase()] = l.slice(i + 1).trim();
  }
  const body = raw.subarray(cut + 4);
  if (+headers['content-length'] !== body.length) throw Error('Content-Length is not the length');
  return { first, headers, body: body.toString('utf8') };
}
