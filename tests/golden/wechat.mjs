// WeChat Pay notifications, made from the documents with Node's own crypto and
// nothing of the C code. What is right is stated by hand beside each case.
import { makeV2 } from './wechat_v2.mjs';
import { makeV3 } from './wechat_v3.mjs';
import { makeV3Shapes } from './wechat_v3_shapes.mjs';

export function make(out) {
	makeV3(out);
	makeV3Shapes(out);
	makeV2(out);
}
