// Draws what `sinter inspect` knows of a model (the JSON in #data): the layers as a graph, their modelled time, the
// arena over time, a roofline and a table; and what `verify` or `quantize` measured, which then gives the graph its
// colours. A layer that is clicked in one picture is marked in all.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const layers = data.layers;
const kColours = {arithmetic: '#3b82c4', weights: '#d1752a', tensors: '#4c9a4c', calls: '#8b8f98'};
const kWords = {arithmetic: 'arithmetic', weights: 'weights from memory', tensors: 'tensors from memory', calls: 'loops and calls'};
const time = l => l.modelled ? l.modelled.us : 0;

const bytes = n => n < 1024 ? n + ' B' : n < 1024 * 1024 ? (n / 1024).toFixed(1) + ' KiB' : (n / 1024 / 1024).toFixed(2) + ' MiB';
const duration = us => us < 1000 ? us.toFixed(us < 10 ? 2 : 0) + ' µs' : (us / 1000).toFixed(2) + ' ms';
const shape = t => t.dtype + ' [' + t.shape.join(', ') + ']';
const element = id => document.getElementById(id);

function add(parent, tag, text, attributes) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  for (const k in attributes || {}) e.setAttribute(k, attributes[k]);
  parent.appendChild(e);
  return e;
}

function svg(section, width, height) {
  return d3.select('#' + section + ' .picture').append('svg').attr('viewBox', `0 0 ${width} ${height}`);
}

// --- What was measured of the layers, if anything was: by verify, or by quantize. `of` is what a layer has of it,
// `length` its bar from 0 to 1, `rows` what is told of it beside the graph and, by the first word, in the table.
const kGood = '#4c9a4c', kBad = '#c8382b', kBytes = '#3b82c4', kFloats = '#d1752a';
const decades = ratio => Math.max(0, Math.min(1, (Math.log10(Math.max(ratio, 1e-9)) + 6) / 6));  // 1e-6 to the tolerance
const share = ratio => ratio >= 1e9 ? 'another shape' : ratio.toPrecision(3) + ' of the tolerance';
const verified = data.verified && {
  title: 'Error', colours: 'The darker, the nearer it is to its tolerance; red ones are outside, gray ones were not compared.',
  hint: `Each layer against the model's meaning, the worst of ${data.verified.cases.length} case(s): ${data.verified.cases.join(', ')}. ` +
      `A bar ends at the tolerance, ${data.verified.rtol} of an element and ${data.verified.atol} of the tensor's greatest; its scale is logarithmic.`,
  of: l => l.verified, length: v => decades(v.ratio), text: v => share(v.ratio),
  colour: v => v.ok ? kGood : kBad, fill: v => v.ok ? d3.interpolateRgb('#eef4ee', '#5fae5f')(decades(v.ratio)) : kBad,
  legend: [[kGood, 'within the tolerance'], [kBad, 'outside']],
  columns: ['error'], cells: v => [share(v.ratio)],
  rows: v => [['error', share(v.ratio)], ['compared', v.value], ['worst', v.text]],
  outputs: data.verified.outputs.map(o => `output ${o.name} against ${o.against}: ${o.ok ? 'as expected, ' + share(o.ratio) : o.text}`),
  cards: card => {
    const bad = layers.filter(l => l.verified && !l.verified.ok).length + data.verified.outputs.filter(o => !o.ok).length;
    card(bad ? bad + ' outside' : 'as expected', 'layers and outputs');
    card(layers.filter(l => l.verified).length + ' of ' + layers.length, 'layers compared');
    card((d3.max(layers.filter(l => l.verified), l => l.verified.ratio) || 0).toPrecision(3), 'of the tolerance at worst');
  },
};
const decibels = v => v.snr_alone_db.toFixed(1) + ' dB';
const saved = v => v.float_us === undefined ? '' : duration(v.float_us);
const computed = v => v.type + (v.kept ? ', kept' : '');
const quantised = data.quantised && {
  title: 'Error of each layer', colours: 'Blue layers compute with bytes, orange ones with floats; the darker, the more they lose.',
  hint: 'Signal to noise at the outputs with this layer alone as bytes: the shorter the bar, the more the layer loses.',
  of: l => l.quantised, length: v => Math.max(0, Math.min(1, v.snr_alone_db / 80)), text: decibels,
  colour: v => v.type === 'float32' ? kFloats : kBytes,
  fill: v => d3.interpolateRgb('#ffffff', v.type === 'float32' ? kFloats : kBytes)(Math.max(.2, 1 - Math.max(0, v.snr_alone_db) / 80)),
  legend: [[kBytes, 'bytes'], [kFloats, 'floats']],
  columns: ['computed in', 'alone', 'weights', 'time in floats'],
  cells: v => [computed(v), decibels(v), v.weight_bytes === undefined ? '' : bytes(v.weight_bytes_float) + ' → ' + bytes(v.weight_bytes), saved(v)],
  rows: v => [['computed in', computed(v)], ['alone', decibels(v)]]
      .concat(v.weight_bytes === undefined ? [] : [['weights', bytes(v.weight_bytes_float) + ' become ' + bytes(v.weight_bytes)]])
      .concat(v.float_us === undefined ? [] : [['time in floats', saved(v)]]),
  outputs: (data.quantised.outputs || []).map(o => `output ${o.name}: ${o.snr_db.toFixed(1)} dB over the samples`),
  cards: card => {
    const looked = layers.filter(l => l.quantised);
    if (looked.length) card(looked.filter(l => l.quantised.type !== 'float32').length + ' of ' + looked.length, 'layers of bytes');
    card(bytes(data.quantised.bytes_before) + ' → ' + bytes(data.quantised.bytes), "the model's file");
    card(duration(data.quantised.float_us), 'modelled in floats');
    for (const o of data.quantised.outputs || []) card(o.snr_db.toFixed(1) + ' dB', 'output ' + o.name);
  },
};
const measured = verified || quantised;

// --- One layer is chosen at a time.
function choose(i) {
  d3.selectAll('.chosen').classed('chosen', false);
  d3.selectAll(`[data-layer="${i}"]`).classed('chosen', true);
  const l = layers[i], pane = element('layer');
  pane.textContent = '';
  add(pane, 'h3', l.function);
  add(pane, 'p', l.summary, {class: 'hint'});
  const list = add(pane, 'dl');
  const row = (name, value) => { add(list, 'dt', name); add(list, 'dd', value); };
  row('kernel', l.kernel);
  if (measured && measured.of(l)) for (const [name, value] of measured.rows(measured.of(l))) row(name, value);
  if (l.halves) row('computes', l.halves === 'none' ? 'float32' : 'float16');
  row('operations', (l.flops / 1e6).toFixed(2) + ' MFLOP');
  if (l.modelled) {
    row('time', `${duration(l.modelled.us)} (${(100 * time(l) / d3.sum(layers, time)).toFixed(1)} %)`);
    row('waits for', kWords[l.modelled.bound]);
    row('moves', `${bytes(l.modelled.tensor_bytes)} of tensors, ${bytes(l.modelled.weight_bytes)} of weights`);
  }
  for (const t of l.tensors) row(t.role === 'read' ? 'reads' : 'writes', `${t.name}: ${shape(t)}, ${t.where}`);
  for (const n of l.nodes) row('ONNX node', n);
  if ((l.offers || []).length < 2) return;
  add(pane, 'h3', 'Offers');
  for (const o of l.offers) add(pane, 'p', o.text, {class: 'hint'});
}

function totals() {
  element('title').textContent = data.name;
  element('subtitle').textContent = `${data.model.file} for ${data.target}, ${layers.length} layers, ${data.threads} thread(s)`;
  const card = (value, name) => { const d = add(element('totals'), 'div'); add(d, 'b', value); add(d, 'span', name); };
  if (measured) measured.cards(card);
  card(bytes(data.arena_bytes), 'RAM: the arena');
  if (data.state_bytes) card(bytes(data.state_bytes), 'RAM: the state');
  card(bytes(data.weights_bytes), 'flash: the weights');
  card((d3.sum(layers, l => l.flops) / 1e6).toFixed(1) + ' M', 'operations');
  if (data.machine) card(duration(d3.sum(layers, time)), `modelled at ${data.machine.mhz} MHz`);
  if (data.code) { card(bytes(data.code.text_bytes), 'flash: the code'); card(bytes(data.code.stack_bytes), 'stack of a run'); }
  if (!(data.advice || []).length) element('advice').remove();
  for (const text of data.advice || []) add(element('advice').querySelector('ol'), 'li', text);
  if (!(data.weight_prices || []).length) element('prices').remove();
  for (const price of data.weight_prices || []) add(element('prices').querySelector('ul'), 'li', price.text);
}

// --- The graph: a box a layer, an arrow for each tensor from the layer that writes it.
function edges() {
  const writer = new Map(), found = new Map();
  const members = new Map(data.outputs.map((t, i) => [t.member, i]));
  const put = (from, to, t) => { const key = from + '>' + to; if (!found.has(key)) found.set(key, {from, to, text: shape(t)}); };
  data.inputs.forEach((t, i) => writer.set(t.member, 'in' + i));
  layers.forEach((l, i) => {
    for (const t of l.tensors)
      if (t.role === 'read') for (const name of [t.where === 'input' ? t.member : t.name, t.inside && t.inside.name]) if (writer.has(name)) { put(writer.get(name), i, t); break; }
    for (const t of l.tensors)
      if (t.role === 'write') {
        if (t.inside && writer.has(t.inside.name)) put(writer.get(t.inside.name), i, t);
        writer.set(t.name, i);
        if (t.inside) writer.set(t.inside.name, i);
        if (t.where === 'output' && members.has(t.member)) put(i, 'out' + members.get(t.member), t);
      }
  });
  return [...found.values()];
}

function graph() {
  const g = new dagre.graphlib.Graph();
  g.setGraph({nodesep: 24, ranksep: 26, ranker: layers.length > 300 ? 'longest-path' : 'network-simplex'});
  const size = (text, below) => ({width: Math.max(90, 6.4 * Math.max(text.length, below.length) + 16), height: 34});
  data.inputs.forEach((t, i) => g.setNode('in' + i, {...size(t.name, shape(t)), text: t.name, below: shape(t), outside: true}));
  data.outputs.forEach((t, i) => g.setNode('out' + i, {...size(t.name, shape(t)), text: t.name, below: shape(t), outside: true}));
  layers.forEach((l, i) => g.setNode(String(i), {...size(l.function, l.kernel), text: l.function, below: l.kernel, layer: i}));
  const arrows = edges();
  for (const e of arrows) g.setEdge(String(e.from), String(e.to), {text: e.text});
  dagre.layout(g);
  const height = 620, picture = svg('graph', 860, height), inner = picture.append('g');
  picture.append('defs').append('marker').attr({id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto'})
      .append('path').attr({d: 'M0,0 8,4 0,8z', class: 'tip', fill: '#888'});
  const line = d3.svg.line().x(p => p.x).y(p => p.y).interpolate('basis');
  for (const e of g.edges())
    inner.append('path').attr({class: 'edge', d: line(g.edge(e).points), 'marker-end': 'url(#tip)'}).append('title').text(g.edge(e).text);
  const slowest = d3.max(layers, time) || 1, heat = d3.scale.linear().domain([0, slowest]).range(['#e8edf3', '#e8654f']);
  const fill = l => !measured ? heat(time(l)) : measured.of(l) ? measured.fill(measured.of(l)) : '#dfe2e6';
  if (measured) element('colours').textContent = measured.colours;
  for (const name of g.nodes()) {
    const n = g.node(name), box = inner.append('g').attr({class: n.outside ? 'outside' : 'node', transform: `translate(${n.x - n.width / 2},${n.y - n.height / 2})`});
    const rect = box.append('rect').attr({width: n.width, height: n.height, rx: 5});
    box.append('text').attr({x: n.width / 2, y: 14, 'text-anchor': 'middle'}).text(n.text);
    box.append('text').attr({x: n.width / 2, y: 28, 'text-anchor': 'middle', opacity: .7}).text(n.below);
    if (n.outside) continue;
    rect.style('fill', fill(layers[n.layer]));
    box.attr('data-layer', n.layer).on('click', () => choose(n.layer)).append('title').text(layers[n.layer].summary);
  }
  // All of it, but no smaller than can be read; a long net begins at its top.
  const whole = g.graph(), scale = Math.min(1, Math.max(.45, Math.min(860 / whole.width, height / whole.height)));
  const zoom = d3.behavior.zoom().scaleExtent([.05, 4]).on('zoom', () => inner.attr('transform', `translate(${d3.event.translate})scale(${d3.event.scale})`));
  zoom.scale(scale).translate([430 - whole.width * scale / 2, 10]);
  picture.call(zoom);
  zoom.event(picture);
  return arrows.length;
}

function axis(picture, scale, orient, x, y, format, ticks) {
  const a = d3.svg.axis().scale(scale).orient(orient).tickFormat(format);
  if (ticks) a.ticks(ticks);
  picture.append('g').attr({class: 'axis', transform: `translate(${x},${y})`}).call(a);
}

// A bar each of `layers` that `has` one, with a legend of [colour, words]. Returns the picture, or null where there are
// none; `size` is a number on the scale, whose greatest is `most`.
const kRow = 16, kLeft = 210, kRight = 1200 - 170;
function barsOf(section, kind, legend, has, most, size, colour, text) {
  const drawn = layers.map((l, i) => ({l, i})).filter(d => has(d.l));
  if (!drawn.length) return null;
  for (const [fill, words] of legend) {
    const s = add(document.querySelector(`#${section} .legend`), 'span');
    add(s, 'i', '', {style: 'background:' + fill});
    s.appendChild(document.createTextNode(words));
  }
  const height = drawn.length * kRow, picture = svg(section, 1200, height + 34), x = d3.scale.linear().domain([0, most]).range([kLeft, kRight]);
  drawn.forEach(({l, i}, k) => {
    picture.append('text').attr({x: kLeft - 8, y: k * kRow + 13, 'text-anchor': 'end'}).text(l.function.slice(0, 32));
    picture.append('rect').attr({class: kind, 'data-layer': i, x: kLeft, y: k * kRow + 3, height: kRow - 4, width: Math.max(1, x(size(l)) - kLeft), fill: colour(l)})
        .on('click', () => choose(i)).append('title').text(l.summary);
    picture.append('text').attr({x: x(size(l)) + 6, y: k * kRow + 13}).text(text(l));
  });
  return {picture, x, height};
}

function bars() {
  const legend = Object.keys(kColours).map(k => [kColours[k], kWords[k]]);
  const drawn = barsOf('time', 'bar', legend, l => l.modelled, d3.max(layers, time), time, l => kColours[l.modelled.bound], l => duration(time(l)));
  if (!drawn) return element('time').remove();
  axis(drawn.picture, drawn.x, 'bottom', 0, drawn.height + 4, duration, 6);
}

function errors() {
  const section = element('measured');
  if (!measured) return section.remove();
  section.querySelector('h2').textContent = measured.title;
  section.querySelector('.hint').textContent = measured.hint;
  const of = f => l => f(measured.of(l));
  barsOf('measured', 'error', measured.legend, measured.of, 1, of(measured.length), of(measured.colour), of(measured.text));
  for (const text of measured.outputs) add(section.querySelector('.outputs'), 'li', text);
}

function memory() {
  const width = 1200, height = 420, left = 80, blocks = data.blocks || [];
  if (!blocks.length) return element('memory').remove();
  const picture = svg('memory', width, height + 40);
  const x = d3.scale.linear().domain([0, layers.length]).range([left, width - 10]), y = d3.scale.linear().domain([0, data.arena_bytes]).range([height, 10]);
  blocks.forEach((b, k) => {
    picture.append('rect').attr({class: 'block', 'data-layer': b.first, x: x(b.first), width: Math.max(1, x(b.last + 1) - x(b.first)), y: y(b.offset + b.bytes),
          height: Math.max(.5, y(b.offset) - y(b.offset + b.bytes)), fill: b.scratch ? '#a5abb5' : d3.hsl(47 * k % 360, .5, .62)})
        .on('click', () => choose(b.first)).append('title').text(`${b.label}: ${bytes(b.bytes)} at ${b.offset}, layers ${b.first} to ${b.last}`);
  });
  axis(picture, x, 'bottom', 0, height, d3.format('d'));
  axis(picture, y, 'left', left, 0, bytes, 6);
  const at = i => blocks.filter(b => b.first <= i && i <= b.last), size = i => d3.sum(at(i), b => b.bytes);
  const peak = d3.range(layers.length).reduce((best, i) => size(i) > size(best) ? i : best, 0);
  const owners = document.querySelector('#memory .owners');
  add(owners, 'p', `Most is in use at layer ${peak}, ${layers[peak].function}: ${bytes(size(peak))} of ${bytes(data.arena_bytes)}.`);
  const list = add(owners, 'ul');
  for (const b of at(peak).sort((a, c) => c.bytes - a.bytes).slice(0, 6)) add(list, 'li', `${bytes(b.bytes)}: ${b.label}`);
}

function roofline() {
  const m = data.machine, dots = layers.map((l, i) => ({l, i})).filter(d => d.l.modelled && d.l.flops > 0 && time(d.l) > 0);
  if (!m || !dots.length) return element('roofline').remove();
  const width = 1200, height = 380, left = 70;
  const intensity = d => d.l.flops / Math.max(1, d.l.modelled.tensor_bytes + d.l.modelled.weight_bytes), speed = d => d.l.flops / time(d.l) / 1e3;
  const x = d3.scale.log().domain([d3.min(dots, intensity) / 2, 2 * Math.max(d3.max(dots, intensity), m.gflops / m.gbytes)]).range([left, width - 20]);
  const y = d3.scale.log().domain([d3.min(dots, speed) / 2, 2 * Math.max(m.gflops, d3.max(dots, speed))]).range([height, 10]);
  const picture = svg('roofline', width, height + 40), plain = v => '125'.includes(v.toExponential()[0]) ? String(+v.toPrecision(2)) : '';
  axis(picture, x, 'bottom', 0, height, plain, 6);
  axis(picture, y, 'left', left, 0, plain, 6);
  picture.append('text').attr({x: width - 24, y: height - 8, 'text-anchor': 'end'}).text('operations a byte');
  picture.append('text').attr({x: left + 6, y: 22}).text('GFLOP/s');
  const roof = x.ticks(60).concat(x.domain(), m.gflops / m.gbytes).sort((a, b) => a - b).map(v => [x(v), y(Math.max(y.domain()[0], Math.min(m.gflops, v * m.gbytes)))]);
  picture.append('path').attr({class: 'roof', d: d3.svg.line()(roof)});
  for (const d of dots)
    picture.append('circle').attr({'data-layer': d.i, cx: x(intensity(d)), cy: y(speed(d)), r: 5, fill: kColours[d.l.modelled.bound], 'fill-opacity': .75})
        .on('click', () => choose(d.i)).append('title').text(`${d.l.function}: ${d.l.summary}`);
}

function table() {
  const t = document.querySelector('#table table'), head = add(add(t, 'thead'), 'tr');
  const more = measured ? measured.columns : [];
  const columns = ['#', 'layer', 'what', 'kernel', 'output', 'MFLOP', 'time', 'waits for', ...more], numbers = new Set(['#', 'MFLOP', 'time']);
  for (const c of columns) add(head, 'th', c, numbers.has(c) ? {class: 'number'} : {});
  const body = add(t, 'tbody');
  layers.forEach((l, i) => {
    const out = l.tensors.find(x => x.role === 'write'), row = add(body, 'tr', undefined, {'data-layer': i});
    const cells = [i, l.function, l.summary, l.kernel, out ? shape(out) : '', (l.flops / 1e6).toFixed(3), l.modelled ? duration(time(l)) : '', l.modelled ? kWords[l.modelled.bound] : ''];
    cells.push(...(measured && measured.of(l) ? measured.cells(measured.of(l)) : more.map(() => '')));
    cells.forEach((c, k) => add(row, 'td', c, numbers.has(columns[k]) ? {class: 'number'} : {}));
    row.onclick = () => choose(i);
  });
}

totals();
const arrows = graph();
errors();
bars();
memory();
roofline();
table();
// What a test asks for: how much was drawn.
document.body.dataset.drawn = `layers ${document.querySelectorAll('.node').length} arrows ${arrows} bars ${document.querySelectorAll('.bar').length} ` +
    `blocks ${document.querySelectorAll('.block').length} dots ${document.querySelectorAll('circle').length} rows ${document.querySelectorAll('tbody tr').length} errors ${document.querySelectorAll('.error').length}`;
